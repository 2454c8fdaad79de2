// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func flat() capability.Set {
	return capability.Of([]capability.Plugin{csi.PluginCapability_Service_CONTROLLER_SERVICE}, everyCall()...)
}

func placed() capability.Set {
	return capability.Of([]capability.Plugin{
		csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	}, everyCall()...)
}

func ofClaim(step, says, advises string) expectation {
	return expectation{provisioner, kindClaim, step, says, advises}
}

func unclaimed(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }

func withSecret(c *storagev1.StorageClass) {
	c.Parameters = map[string]string{
		"csi.storage.k8s.io/provisioner-secret-name": "creds", "csi.storage.k8s.io/provisioner-secret-namespace": kit.Namespace, "kind": "ssd",
	}
}

// TestClaims goes through what claims typically wait for. Each row runs the room as well: the event that it
// writes has the words of the explanation.
func TestClaims(t *testing.T) {
	waiting := kit.Class(kit.ClassName, kit.WaitForConsumer)
	notReady := kit.Snapshot("monday", "src")
	ready := kit.Snapshot("monday", "src", kit.BoundContent("snapcontent"))
	content := kit.Content(ready, "vol-src", kit.Taken("snap-1"), func(c *kube.Content) { c.Name = "snapcontent" })
	for _, c := range []struct {
		name    string
		can     capability.Set
		objects []kube.Object
		want    expectation
	}{
		{"class missing", flat(), []kube.Object{kit.Claim("data")},
			ofClaim("Reject", `storageClass "fast" not found`, "create StorageClass fast")},
		{"class of another driver", flat(), []kube.Object{kit.Claim("data"), kit.Class(kit.ClassName, func(c *storagev1.StorageClass) { c.Provisioner = "other" })},
			ofClaim("Ignore", "the class of the claim belongs to another driver", "StorageClass fast is of driver other by now, and the claim was given to driver tandem.csi.example")},
		{"claim of another driver", flat(), []kube.Object{kit.Claim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{wellknown.AnnStorageProvisioner: "other"}
		}), kit.Class(kit.ClassName)}, ofClaim("Ignore", "the claim is not for this driver", "--driver-name=other")},
		{"not given to a driver", flat(), []kube.Object{kit.Claim("data", unclaimed), kit.Class(kit.ClassName)},
			ofClaim("", "has not given the claim to any driver", "kube-controller-manager")},
		{"not given to a driver, with no consumer", flat(), []kube.Object{kit.Claim("data", unclaimed), waiting},
			ofClaim("", "has not given the claim to any driver", "start a pod")},
		{"no consumer", placed(), []kube.Object{kit.Claim("data"), waiting},
			ofClaim("Ignore", "the claim waits for its first consumer", "start a pod")},
		{"driver not on the node", placed(), []kube.Object{kit.Claim("data", kit.OnNode("n1")), waiting, kit.Node("n1", nil),
			&storagev1.CSINode{ObjectMeta: meta1("n1")}},
			ofClaim("Reject", `its CSINode does not list driver "tandem.csi.example"`, "look whether the driver runs")},
		{"node gone", placed(), []kube.Object{kit.Claim("data", kit.OnNode("n1")), waiting},
			ofClaim("Reschedule", `CSINode "n1" of the selected node not found`, "the scheduler is asked")},
		{"snapshot missing", flat(), []kube.Object{kit.Claim("data", kit.FromSnapshot("monday")), kit.Class(kit.ClassName)},
			ofClaim("Reject", "error getting snapshot monday from api server", "monday exists")},
		{"snapshot not ready", flat(), []kube.Object{kit.Claim("data", kit.FromSnapshot("monday")), kit.Class(kit.ClassName), notReady},
			ofClaim("Reject", "snapshot monday not bound", "snapshotter explain -n default monday")},
		{"size refused", flat(), []kube.Object{kit.Claim("data", kit.FromSnapshot("monday"), kit.Size("1Mi")), kit.Class(kit.ClassName), ready, content},
			ofClaim("Reject", "requested volume size 1048576 is less than", "make one that asks for 1Gi or more")},
		{"source claim pending", flat(), []kube.Object{kit.Claim("data", kit.FromClaim("src")), kit.Claim("src"), kit.Class(kit.ClassName)},
			ofClaim("Reject", "must have a status of Bound", "provisioner explain -n default src")},
		{"source claim missing", flat(), []kube.Object{kit.Claim("data", kit.FromClaim("src")), kit.Class(kit.ClassName)},
			ofClaim("Reject", "error getting PVC src", "make that claim")},
		{"populator", flat(), []kube.Object{kit.Claim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: kit.Ptr("x.example"), Kind: "Image", Name: "i"}
		}), kit.Class(kit.ClassName)}, ofClaim("LeaveToPopulator", "external populator", "look at the program that handles")},
		{"driver without controller", capability.Of(nil), []kube.Object{kit.Claim("data"), kit.Class(kit.ClassName)},
			ofClaim("Reject", "plugin CONTROLLER_SERVICE capability is not reported", "has to be able to")},
		{"being deleted", flat(), []kube.Object{kit.With(kit.Claim("data"), kit.Finalizers("kubernetes.io/pvc-protection"), kit.Deleted), kit.Class(kit.ClassName)},
			ofClaim("Ignore", "the claim is being deleted", "see below who holds it")},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(c.objects...)
			m := c.want.check(t, explainClaim(t, h, askedDriver(c.can)))
			runClaims(h, c.can)
			sameWords(t, h, m.Event)
		})
	}
}

// TestRequest: the request is told whole, with the name of the secret in place of it.
func TestRequest(t *testing.T) {
	h := kit.New(t)
	ready := kit.Snapshot("monday", "src", kit.BoundContent("snapcontent"))
	h.Put(
		kit.Claim("data", kit.FromSnapshot("monday"), kit.OnNode("n1")), kit.Class(kit.ClassName, kit.WaitForConsumer, withSecret),
		ready, kit.Content(ready, "vol-src", kit.Taken("snap-1"), func(c *kube.Content) { c.Name = "snapcontent" }),
		kit.Node("n1", map[string]string{"zone": "a"}), kit.Node("n2", map[string]string{"zone": "b"}),
		kit.CSINode("n1", "zone"), kit.CSINode("n2", "zone"),
	)
	h.Clock.Step(4 * time.Minute)
	data, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "data"})
	h.Put(eventOf(h, "e2", data, time.Minute, "ProvisioningFailed", "the newer one"), eventOf(h, "e1", data, time.Hour, "ProvisioningFailed", "the older one"))
	report := explainClaim(t, h, askedDriver(placed()))
	ofClaim("Create", "in the way: the provisioner could not go on when it last tried, 60s ago: the newer one", "docs/operations.md says what helps").check(t, report)
	golden(t, "request.txt", written(t, report, "text"))
	golden(t, "request.json", written(t, report, "json"))
}

// TestUnasked: without the driver its name comes from the objects, and its topology from the nodes.
func TestUnasked(t *testing.T) {
	why := Driver{Why: "there is no socket /run/csi/socket"}
	t.Run("named by the claim", func(t *testing.T) {
		h := kit.New(t)
		h.Put(kit.Claim("data", kit.OnNode("n1")), kit.Class(kit.ClassName), kit.Node("n1", map[string]string{"zone": "a"}), kit.CSINode("n1", "zone"))
		report := explainClaim(t, h, why)
		m := ofClaim("Create", "nothing is in the way", "").check(t, report)
		if m.Request == nil || len(m.Request.Preferred) != 1 || report.Driver.Name != kit.DriverName {
			t.Error(written(t, report, "text"))
		}
		golden(t, "unasked.txt", written(t, report, "text"))
	})
	t.Run("named by nobody", func(t *testing.T) {
		h := kit.New(t)
		h.Put(kit.Claim("data", unclaimed))
		ofClaim("", "has not given the claim to any driver", "create StorageClass fast").check(t, explainClaim(t, h, why))
	})
	t.Run("named by a flag", func(t *testing.T) {
		h := kit.New(t)
		h.Put(kit.Claim("data"), kit.Class(kit.ClassName))
		report := explainClaim(t, h, Driver{Name: "other", Why: why.Why})
		ofClaim("Ignore", "the claim is not for this driver", "--driver-name="+kit.DriverName).check(t, report)
	})
}
