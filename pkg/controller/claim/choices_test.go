// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func with(edit func(*claim.Options)) func(*claim.Options, *claim.Deps) {
	return func(o *claim.Options, _ *claim.Deps) { edit(o) }
}

var snapKey = kube.Key{Namespace: kit.Namespace, Name: "snap"}

// A claim that asks for as little as the one that its snapshot was taken from did, before the driver rounded.
func TestSmallRestore(t *testing.T) {
	small := func(t *testing.T) *kit.Harness {
		h := world(t, kit.Claim("data", kit.FromSnapshot("snap"), kit.Size("50Mi")))
		snapshotOf(h, "snap", func(s *snapv1.VolumeSnapshot) { s.Finalizers = []string{"foreign"} })
		kit.Edit(h.API, snapKey, func(s *snapv1.VolumeSnapshot) { s.Status.RestoreSize = kit.Ptr(resource.MustParse("1Gi")) })
		return h
	}
	t.Run("B033 refused with both sizes, once and not in a hurry, until there is a claim that asks for enough", func(t *testing.T) {
		h := small(t)
		start(h)
		h.Settle()
		refusal := refusedSnapshot + "requested volume size 52428800 is less than the size 1073741824 for the source snapshot snap; delete this claim and make one that asks for 1Gi or more, or start the provisioner with --restore-size=grow"
		if got := h.Log.Lines(); len(got) != 1 || got[0] != refusal {
			t.Errorf("%q", got)
		}
		if tries := len(h.Errors()); tries == 0 || tries > 20 {
			t.Errorf("tried %d times in %v", tries, h.Horizon)
		}
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
		h.Put(kit.Claim("again", kit.FromSnapshot("snap"), kit.Size("1Gi")))
		h.Settle()
		if volumes := kit.All[*corev1.PersistentVolume](h.API); len(volumes) != 1 {
			t.Errorf("%d volumes after a claim that asks for enough", len(volumes))
		}
	})
	t.Run("B033 grown, and the volume says what the driver made", func(t *testing.T) {
		h := small(t)
		h.Driver.Next("CreateVolume", kit.Reply{Volume: func(v *csi.Volume) *csi.Volume { v.CapacityBytes = 3 << 29; return v }})
		start(h, with(func(o *claim.Options) { o.RestoreSize = provision.GrowSmaller }))
		h.Settle()
		want(t, h, protect, "driver CreateVolume "+name+created, "create persistentvolumes "+name, provisioned+name)
		asked := requests(h)
		if got := asked[len(asked)-1].GetCapacityRange(); got.GetRequiredBytes() != 1<<30 || got.GetLimitBytes() != 0 {
			t.Errorf("asked for %v", got)
		}
		volume, _ := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
		if got := volume.Spec.Capacity.Storage().String(); got != "1536Mi" {
			t.Errorf("the PersistentVolume has %s", got)
		}
	})
}

// The volume that a snapshot was taken from is found by its handle, and is only a hint.
func TestRestoreNearItsSource(t *testing.T) {
	for _, c := range []struct {
		name  string
		flag  string
		world func(*kit.Harness)
		want  string
	}{
		{"not by default", provision.IgnoreSource, func(*kit.Harness) {}, "a"},
		{"the source volume", provision.PreferSource, func(*kit.Harness) {}, "b"},
		{"the source volume is gone", provision.PreferSource, func(h *kit.Harness) {
			kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: "source-pv"})
		}, "a"},
		{"what the content says, when the source volume is gone", provision.PreferSource, func(h *kit.Harness) {
			kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: "source-pv"})
			for _, content := range kit.All[*kube.Content](h.API) {
				kit.Edit(h.API, kube.KeyOf(content), func(c *kube.Content) { kube.SetAnnotation(c, "csi-tandem.io/source-topology", `[{"zone":"c"}]`) })
			}
		}, "c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := world(t, kit.Claim("data", kit.FromSnapshot("snap")))
			snapshotOf(h, "snap")
			h.Driver.Capabilities = capability.Of([]capability.Plugin{
				csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
			}, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT)
			for node, zone := range map[string]string{"n1": "a", "n2": "b", "n3": "c"} {
				h.Put(kit.Node(node, map[string]string{"zone": zone}), kit.CSINode(node, "zone"))
			}
			h.Put(kit.Volume("source-pv", func(v *corev1.PersistentVolume) {
				v.Spec.CSI.VolumeHandle = kit.VolumeHandle("source")
				v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}},
				}}}
			}))
			c.world(h)
			start(h, with(func(o *claim.Options) { o.RestoreTopology = c.flag }))
			h.Settle()
			asked := requests(h)
			places := asked[len(asked)-1].GetAccessibilityRequirements()
			if len(places.GetRequisite()) != 3 || places.GetPreferred()[0].GetSegments()["zone"] != c.want {
				t.Errorf("asked for %v", places)
			}
		})
	}
}

func TestReadableNames(t *testing.T) {
	uid := name[len("pvc-"):]
	template := with(func(o *claim.Options) { o.NameTemplate = "{namespace}-{name}-{uid}" })
	t.Run("driver and cluster know the same name", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		start(h, template)
		h.Settle()
		want(t, h, "driver CreateVolume default-data-"+uid+created, "create persistentvolumes default-data-"+uid, provisioned+"default-data-"+uid)
	})
	t.Run("a volume from before the flag is recognised", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		start(h)
		h.Settle()
		h.Restart()
		start(h, template)
		h.Settle()
		want(t, h, "driver CreateVolume "+name+created, "create persistentvolumes "+name, provisioned+name)
	})
	t.Run("a volume with the flag is recognised", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		start(h, template)
		h.Settle()
		h.Restart()
		start(h, template)
		h.Settle()
		if calls := h.Driver.Calls("CreateVolume"); len(calls) != 1 {
			t.Errorf("%d calls", len(calls))
		}
	})
}

func TestMetadataForTheDriver(t *testing.T) {
	labelled := func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"team": "blue", "other": "x"} }
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kit.Namespace, Labels: map[string]string{"tenant": "t1", "other": "x"}}}
	flags := with(func(o *claim.Options) {
		o.Metadata = provision.Metadata{ClaimLabels: []string{"team"}, NamespaceLabels: []string{"tenant"}}
	})
	t.Run("of the claim alone, no namespace is read", func(t *testing.T) {
		h := world(t, kit.Claim("data", labelled))
		start(h, with(func(o *claim.Options) { o.Metadata.ClaimLabels = []string{"team"} }))
		h.Settle()
		if d := cmp.Diff(map[string]string{"csi-tandem.io/pvc-label/team": "blue"}, requests(h)[0].GetParameters()); d != "" {
			t.Error(d)
		}
		for _, request := range h.API.Requests() {
			if request.Resource == "namespaces" {
				t.Error("a namespace was read, which needs a right")
			}
		}
	})
	t.Run("of the namespace too", func(t *testing.T) {
		h := world(t, kit.Claim("data", labelled), namespace)
		start(h, flags)
		h.Settle()
		if d := cmp.Diff(map[string]string{"csi-tandem.io/pvc-label/team": "blue", "csi-tandem.io/namespace-label/tenant": "t1"}, requests(h)[0].GetParameters()); d != "" {
			t.Error(d)
		}
	})
	t.Run("without the right the claim waits and says why", func(t *testing.T) {
		h := world(t, kit.Claim("data", labelled), namespace)
		release := h.API.Deny("get", "namespaces")
		start(h, flags)
		h.Settle()
		if got := h.Log.Lines(); len(got) != 1 || got[0][:len(failed)] != failed || len(requests(h)) != 0 {
			t.Errorf("%q", got)
		}
		release()
		h.Settle()
		if len(requests(h)) != 1 {
			t.Error("the right came and nothing happened")
		}
	})
}
