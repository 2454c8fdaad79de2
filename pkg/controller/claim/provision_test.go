// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"errors"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func TestProvisioning(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(*kit.Harness)
		want []string
	}{
		{"T01 the plain walk", func(*kit.Harness) {}, []string{
			"driver CreateVolume " + name + created, "create persistentvolumes " + name, provisioned + name,
		}},
		{"T57 the write fails twice", func(h *kit.Harness) {
			h.API.Fail("create", "persistentvolumes", apierrors.NewInternalError(errors.New("etcd")), 2)
		}, []string{
			"driver CreateVolume " + name + created,
			"create persistentvolumes " + name + " → InternalError", "create persistentvolumes " + name + " → InternalError",
			"create persistentvolumes " + name, provisioned + name,
		}},
		{"B055 the answer to the write is lost", func(h *kit.Harness) {
			h.API.Lose("create", "persistentvolumes", apierrors.NewTimeoutError("slow", 1), 1)
		}, []string{
			"driver CreateVolume " + name + created,
			"create persistentvolumes " + name + " → Timeout", provisioned + name,
		}},
		{"W13 the API server refuses the volume", func(h *kit.Harness) {
			h.API.Fail("create", "persistentvolumes", apierrors.NewBadRequest("no"), 1)
		}, []string{
			"driver CreateVolume " + name + created,
			"create persistentvolumes " + name + " → BadRequest", "driver DeleteVolume handle-of-" + name + " → OK",
			failed + "saving PersistentVolume " + name + ": no; Kubernetes does not store what the driver or the StorageClass say of the volume: that has to change; the volume is made anew then",
			"driver CreateVolume " + name + created, "create persistentvolumes " + name, provisioned + name,
		}},
		{"T65 a final error is told and tried again", func(h *kit.Harness) {
			h.Driver.Next("CreateVolume", kit.Reply{Code: codes.NotFound, Text: "no pool", Times: 2})
		}, []string{
			"driver CreateVolume " + name + " → NotFound", failed + "rpc error: code = NotFound desc = no pool",
			"driver CreateVolume " + name + " → NotFound",
			"driver CreateVolume " + name + created, "create persistentvolumes " + name, provisioned + name,
		}},
		{"W8 the answer has no volume", func(h *kit.Harness) {
			h.Driver.Next("CreateVolume", kit.Reply{Volume: func(*csi.Volume) *csi.Volume { return nil }})
		}, []string{
			"driver CreateVolume " + name + " → Internal", failed + "rpc error: code = Internal desc = the driver answered OK without a volume",
			"driver CreateVolume " + name + created, "create persistentvolumes " + name, provisioned + name,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			c.with(h)
			start(h)
			h.Settle()
			want(t, h, c.want...)
			if left := h.Driver.Inventory(); len(left) != 1 || len(kit.All[*corev1.PersistentVolume](h.API)) != 1 {
				t.Error(left)
			}
		})
	}
}

func TestSlowCallsAreTold(t *testing.T) {
	succeeded := "Normal ProvisioningSucceeded Successfully provisioned volume " + name
	for took, events := range map[time.Duration][]string{
		2 * time.Second:        {`Normal Provisioning External provisioner is provisioning volume for claim "default/data"`, succeeded},
		999 * time.Millisecond: {succeeded},
	} {
		h := world(t, kit.Claim("data"))
		h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: func() { h.Clock.Step(took) }})
		start(h)
		h.Settle()
		if d := cmp.Diff(events, h.Recorder.Events()); d != "" {
			t.Errorf("%v: %s", took, d)
		}
	}
}

func TestNameTakenWhileTheDriverWorks(t *testing.T) {
	h := world(t, kit.Claim("data"))
	other := kit.Claim("other")
	h.API.Script(kit.Rule{Verb: "create", Resource: "persistentvolumes", Times: 1, Meanwhile: func() {
		h.Put(kit.Volume(name, kit.ClaimedBy(other)))
	}})
	h.Stores.Hold()
	start(h)
	h.Horizon = 3 * time.Second
	h.Settle()
	if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
		t.Errorf("B055: a volume was deleted: %v", calls)
	}
	if got := len(requests(h)); got != 1 {
		t.Errorf("%d calls of CreateVolume", got)
	}
	text := "Warning ProvisioningFailed saving PersistentVolume " + name + `: it exists already and is not for this claim or not volume "handle-of-` + name + `"; nothing is deleted`
	if d := cmp.Diff([]string{text}, h.Recorder.Events()); d != "" {
		t.Error(d)
	}
}

func TestClassArrivesLater(t *testing.T) {
	h := kit.New(t)
	h.Driver.Capabilities = can()
	h.Put(kit.Claim("data"))
	start(h)
	h.Horizon = 0
	h.Settle()
	want(t, h, []string(nil)...)
	if d := cmp.Diff([]string{`claim default/data@` + name[len("pvc-"):] + `: storageClass "fast" not found`}, h.Errors()); d != "" {
		t.Error("T05", d)
	}
	h.Put(kit.Class(kit.ClassName))
	h.Settle()
	want(t, h, "driver CreateVolume "+name+created, "create persistentvolumes "+name, provisioned+name)
}

func TestPopulators(t *testing.T) {
	h := world(t, kit.Claim("data", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: kit.Ptr("x"), Kind: "MyPopulator", Name: "p"}
	}))
	start(h)
	h.Settle()
	want(t, h, "event default/data: Normal Provisioning Assuming an external populator will provision the volume")
}

func TestSecrets(t *testing.T) {
	class := kit.Class(kit.ClassName, func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{
			wellknown.ParamProvisionerSecretName: "${pvc.name}", wellknown.ParamProvisionerSecretNamespace: "default",
			wellknown.ParamNodeStageSecretName: "nobody-has-it", wellknown.ParamNodeStageSecretNamespace: "default",
		}
	})
	h := world(t, class, kit.Claim("data"))
	h.Driver.Secrets = map[string]string{"key": "S3CR3T-CANARY"}
	start(h)
	h.Horizon = time.Second
	h.Settle()
	want(t, h, failed+`error getting secret data in namespace default: secrets "data" not found; StorageClass "fast" names it in its parameters csi.storage.k8s.io/provisioner-secret-name and `+
		`csi.storage.k8s.io/provisioner-secret-namespace: create that secret, and the claim goes on by itself, within --retry-interval-max (5m if not set), `+
		`or at once with kubectl annotate pvc -n default data --overwrite csi-tandem.io/retry=$(date +%s)`)
	h.Log.Clear()
	h.Put(kit.Secret("data", h.Driver.Secrets))
	h.Horizon = time.Minute
	h.Settle()
	want(t, h, "driver CreateVolume "+name+created, "create persistentvolumes "+name, provisioned+name)
	volume, _ := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
	if volume.Spec.CSI.NodeStageSecretRef == nil || volume.Annotations[wellknown.AnnDeletionSecretName] != "data" {
		t.Error("T34", volume.Spec.CSI, volume.Annotations)
	}
}

func TestAttributesClassIsReadLive(t *testing.T) {
	named := kit.Claim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = kit.Ptr("gold") })
	h := world(t, named)
	start(h)
	h.Horizon = time.Second
	h.Settle()
	want(t, h, failed+`volumeattributesclasses.storage.k8s.io "gold" not found; see that VolumeAttributesClass "gold" exists and is of driver "tandem.csi.example", and the claim goes on by itself, within --retry-interval-max (5m if not set), `+
		`or at once with kubectl annotate pvc -n default data --overwrite csi-tandem.io/retry=$(date +%s); or delete this claim and make one that names another`)
	class := kit.With(&storagev1.VolumeAttributesClass{DriverName: kit.DriverName, Parameters: map[string]string{"iops": "9"}})
	class.Name = "gold"
	h.Put(class)
	h.Horizon = time.Minute
	h.Settle()
	if got := requests(h); len(got) != 1 || got[0].MutableParameters["iops"] != "9" {
		t.Errorf("T26 T27: %v", got)
	}
}

func TestUncertainAttempts(t *testing.T) {
	nodes := func(h *kit.Harness) {
		h.Driver.Capabilities = withTopology()
		h.Put(kit.Node("n1", map[string]string{"zone": "a"}), kit.CSINode("n1", "zone"))
	}
	t.Run("T86 the same request again, whatever happened to the cluster", func(t *testing.T) {
		h := world(t, kit.Claim("data", kit.OnNode("n1")))
		nodes(h)
		h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Done: true, Meanwhile: func() {
			kit.Remove[*corev1.Node](h.API, kube.Key{Name: "n1"})
			kit.Remove[*storagev1.CSINode](h.API, kube.Key{Name: "n1"})
			h.Put(kit.Node("n2", map[string]string{"zone": "b"}), kit.CSINode("n2", "zone"))
			kit.Edit(h.API, dataKey, kit.OnNode("n2"))
		}})
		start(h)
		h.Settle()
		calls := requests(h)
		if len(calls) != 2 {
			t.Fatalf("%d calls", len(calls))
		}
		if d := cmp.Diff(calls[0], calls[1], protocmp.Transform()); d != "" {
			t.Error(d)
		}
		if volume, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok || volume.Spec.NodeAffinity == nil {
			t.Error("T88: the volume has no affinity")
		}
	})
	t.Run("T87 W1 what never reached the driver follows the new node", func(t *testing.T) {
		class := kit.Class(kit.ClassName, func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{wellknown.ParamSecretName: "s", wellknown.ParamSecretNamespace: "default"}
		})
		h := world(t, class, kit.Claim("data", kit.OnNode("n1")))
		nodes(h)
		h.Put(kit.Node("n2", map[string]string{"zone": "b"}), kit.CSINode("n2", "zone"))
		start(h, func(o *claim.Options, _ *claim.Deps) { o.Places.Strict = true })
		h.Horizon = time.Second
		h.Settle()
		kit.Edit(h.API, dataKey, kit.OnNode("n2"))
		h.Put(kit.Secret("s", nil))
		h.Settle()
		if got := requests(h); len(got) != 1 || got[0].AccessibilityRequirements.Requisite[0].Segments["zone"] != "b" {
			t.Error(got)
		}
	})
}

func TestUncertainAttemptsOfDeletedClaims(t *testing.T) {
	t.Run("T11 the claim goes while the outcome is open", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		h.Play(kit.Binder(h.API))
		h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Done: true, Times: 2, Meanwhile: func() {
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
		}})
		start(h)
		h.Settle()
		want(t, h,
			"driver CreateVolume "+name+" → DeadlineExceeded", "driver CreateVolume "+name+" → DeadlineExceeded",
			"driver CreateVolume "+name+created, "create persistentvolumes "+name)
		volume, _ := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
		if volume.Status.Phase != corev1.VolumeReleased {
			t.Errorf("the volume is %s", volume.Status.Phase)
		}
	})
	t.Run("B043 no room, and the claim is deleted", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		h.Driver.Next("CreateVolume", kit.Reply{Code: codes.ResourceExhausted, Text: "full", Times: 99})
		start(h)
		h.Horizon = 3 * time.Second
		h.Settle()
		before := len(requests(h))
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
		h.Horizon = time.Hour
		h.Settle()
		if after := len(requests(h)); before != 3 || after != before {
			t.Errorf("%d calls, then %d", before, after)
		}
	})
}

func TestTwoClaimsOfOneName(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "down", Done: true, Meanwhile: func() {
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
		again := kit.Claim("data")
		again.UID = "second"
		h.Put(again)
	}})
	start(h)
	h.Settle()
	if d := cmp.Diff([]string{"volume " + name, "volume pvc-second"}, h.Driver.Inventory()); d != "" {
		t.Error("T13", d)
	}
	if got := len(kit.All[*corev1.PersistentVolume](h.API)); got != 2 {
		t.Errorf("T13: %d volumes", got)
	}
}

func TestSlowCachesDoNotRepeatCalls(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Stores.Hold()
	start(h)
	for range 3 {
		h.Enqueue("claim", dataUID)
		h.Settle()
	}
	want(t, h, "driver CreateVolume "+name+created, "create persistentvolumes "+name, provisioned+name)
}
