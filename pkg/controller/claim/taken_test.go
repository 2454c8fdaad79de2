// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// answering gives the volume another id.
func answering(handle string) kit.Reply {
	return kit.Reply{Volume: func(v *csi.Volume) *csi.Volume { v.VolumeId = handle; return v }, Times: 2}
}

// TestVolumeOfAnother: a driver that answers with a volume that somebody else has gets nothing bound and nothing deleted.
// Catches a provisioner that believes the id.
func TestVolumeOfAnother(t *testing.T) {
	other := kit.Volume("theirs", kit.ClaimedBy(kit.Claim("other")))
	refused := failed + `the driver answered with volume "handle-of-theirs", which PersistentVolume theirs has for another claim; nothing is bound or deleted`
	small := answering("handle-of-theirs")
	small.Volume = func(v *csi.Volume) *csi.Volume { v.VolumeId, v.CapacityBytes = "handle-of-theirs", 1; return v }
	for name, c := range map[string]struct {
		reply kit.Reply
		says  string
	}{
		"right otherwise": {answering("handle-of-theirs"), refused},
		"too small":       {small, "volume handle-of-theirs is kept, because PersistentVolume theirs holds it"},
	} {
		t.Run(name, func(t *testing.T) {
			h := world(t, kit.Claim("data"), other.DeepCopy())
			h.Driver.Next("CreateVolume", c.reply)
			start(h)
			h.Horizon = 0
			h.Settle()
			lines := fmt.Sprint(h.Log.Lines())
			if !strings.Contains(lines, c.says) || strings.Contains(lines, "DeleteVolume") || strings.Contains(lines, "create persistentvolumes") {
				t.Errorf("%s\n%s", lines, h.Trace())
			}
			h.Horizon = 1e12
			h.Settle()
			if v, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: claimVolume}); !ok || v.Spec.CSI.VolumeHandle == "handle-of-theirs" {
				t.Error("no volume of its own once the driver is well", h.Trace())
			}
		})
	}
	t.Run("of a claim that was served a moment ago, and the cache is behind", func(t *testing.T) {
		h := world(t, kit.Claim("a"), kit.Claim("b"))
		h.Stores.Hold()
		h.Driver.Next("CreateVolume", answering("one"))
		start(h)
		h.Horizon = 0
		for _, name := range []string{"a", "b"} {
			h.Enqueue("claim", uidKey(name))
		}
		h.Settle()
		volumes := kit.All[*corev1.PersistentVolume](h.API)
		if len(volumes) != 1 || !strings.Contains(fmt.Sprint(h.Log.Lines()), `the driver answered with volume "one", which PersistentVolume `+volumes[0].Name) {
			t.Error(len(volumes), h.Trace())
		}
	})
	t.Run("of a claim whose PersistentVolume cannot be written yet", func(t *testing.T) {
		h := world(t, kit.Claim("a"))
		h.Driver.Next("CreateVolume", answering("one"))
		release := h.API.Deny("create", "persistentvolumes")
		start(h)
		h.Horizon = 0
		h.Settle()
		h.Put(kit.Claim("b"))
		h.Settle()
		release()
		h.Horizon = 1e12
		h.Settle()
		seen := map[string]bool{}
		for _, v := range kit.All[*corev1.PersistentVolume](h.API) {
			if seen[v.Spec.CSI.VolumeHandle] {
				t.Error("one volume for two claims")
			}
			seen[v.Spec.CSI.VolumeHandle] = true
		}
		if len(seen) != 2 || len(h.Driver.Calls("DeleteVolume")) != 0 {
			t.Error(seen, h.Trace())
		}
	})
	t.Run("a handle that is free again may come again", func(t *testing.T) {
		h := world(t, kit.Claim("a"))
		h.Driver.Next("CreateVolume", answering("one"))
		start(h)
		h.Settle()
		v := kit.All[*corev1.PersistentVolume](h.API)[0]
		kit.Edit(h.API, kube.Key{Name: v.Name}, func(v *corev1.PersistentVolume) { v.Finalizers = nil })
		kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: v.Name})
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "a"})
		h.Put(kit.Claim("b"))
		h.Settle()
		if got := kit.All[*corev1.PersistentVolume](h.API); len(got) != 1 || got[0].Spec.CSI.VolumeHandle != "one" {
			t.Error(got, h.Trace())
		}
	})
}

// TestHandleThatComesTwice: a driver answers two claims with one volume at the same time, or gives an id anew as those do that number their volumes. Catches
// a room for which a volume is nobody's until it is stored, and one that holds back for ever what a claim had that was removed.
func TestHandleThatComesTwice(t *testing.T) {
	t.Run("of a claim whose PersistentVolume is being written", func(t *testing.T) {
		h := world(t, kit.Claim("a"))
		h.Driver.Next("CreateVolume", answering("one"))
		c := start(h)
		h.API.Script(kit.Rule{Verb: "create", Resource: "persistentvolumes", Times: 1, Meanwhile: func() {
			h.Put(kit.Claim("b"))
			h.Stores.Sync()
			if _, err := c.Reconcile(h.Ctx, uidKey("b")); err == nil {
				t.Error("served with the same volume")
			}
		}})
		h.Horizon = 0
		h.Settle()
		if v := kit.All[*corev1.PersistentVolume](h.API); len(v) != 2 || v[0].Spec.CSI.VolumeHandle == v[1].Spec.CSI.VolumeHandle || len(requests(h)) != 3 {
			t.Error(len(v), len(requests(h)), h.Trace())
		}
	})
	t.Run("the handle of a volume that was wrong and is removed may come again", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		wrong := func(v *csi.Volume) *csi.Volume { v.VolumeId, v.CapacityBytes = "handle-of-theirs", 1; return v }
		h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: leaves(h), Volume: wrong})
		start(h)
		h.Settle()
		h.Driver.Next("CreateVolume", answering("handle-of-theirs"))
		h.Put(kit.Claim("b"))
		h.Horizon = 0
		h.Settle()
		if got := kit.All[*corev1.PersistentVolume](h.API); len(got) != 1 || len(h.Driver.Calls("DeleteVolume")) != 1 {
			t.Error(len(got), h.Trace())
		}
	})
}

// claimVolume is the PersistentVolume of the claim "data".
var claimVolume = name

func uidKey(claim string) reconcile.Key {
	return reconcile.Key{Namespace: kit.Namespace, Name: claim, UID: kit.UIDOf("persistentvolumeclaims", kit.Namespace, claim, 0)}
}
