// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// startWith adds a room with edited dependencies.
func startWith(h *kit.Harness, edit func(*volume.Deps)) {
	deps := volume.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
		Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Attachments: h.Stores.Attachments, Claims: h.Stores.Claims,
		RetryStart: h.RetryStart, RetryMax: h.RetryMax,
	}
	edit(&deps)
	c := volume.New(deps)
	h.Add(kit.Room{Name: "volume", Reconcile: c.Reconcile, Keys: kit.Feeds(kit.On(c.KeysOfVolume), kit.On(c.KeysOfAttachment))})
}

func retain(h *kit.Harness) {
	kit.Edit(h.API, key, func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
}

// TestTurnOfADeletion: a deletion waits for its turn, and what was read before it is old by then. Catches a room that deletes on the strength of that
// what is kept by now, and one that never deletes what it has to wait for.
func TestTurnOfADeletion(t *testing.T) {
	for title, c := range map[string]struct {
		meanwhile func(h *kit.Harness)
		left      int
	}{
		"nothing happens":         {func(*kit.Harness) {}, 0},
		"it is retained":          {retain, 1},
		"another one has it, too": {func(h *kit.Harness) { h.Put(twin("w", kit.ClaimedBy(kit.Claim("other")))) }, 1},
		"nobody can tell": {func(h *kit.Harness) {
			h.API.Script(kit.Rule{Verb: "get", Resource: "persistentvolumes", Err: serverError()})
		}, 1},
		"its claim is back": {func(h *kit.Harness) {
			h.Put(kit.Claim("gone", kit.BoundTo("v")))
		}, 1},
	} {
		t.Run(title, func(t *testing.T) {
			h := world(t, released())
			happened := false
			startWith(h, func(d *volume.Deps) {
				d.Driver = kit.Crowd(h, func() {
					if !happened {
						happened = true
						c.meanwhile(h)
					}
				})
			})
			h.Horizon = time.Minute
			h.Settle()
			if left := h.Driver.Inventory(); !happened || len(left) != c.left {
				t.Errorf("happened %v, left %v\n%s", happened, left, h.Trace())
			}
		})
	}
}

// TestRetainedWhileItSettles: taking an attempt off the record can take long, and meanwhile somebody keeps the volume. Catches a room that has read
// before that whether the volume may go.
func TestRetainedWhileItSettles(t *testing.T) {
	h := world(t, released())
	startWith(h, func(d *volume.Deps) {
		d.Settle = func(context.Context, *corev1.PersistentVolume) (bool, error) {
			retain(h)
			return true, nil
		}
	})
	h.Settle()
	if v, ok := kit.Read[*corev1.PersistentVolume](h.API, key); !ok || len(v.Finalizers) > 0 || len(h.Driver.Inventory()) != 1 {
		t.Error("what is kept is deleted", h.Trace())
	}
}

// looked are attachments that do something when somebody has looked for those of a volume, and has none.
func looked(look func()) *kube.Store[*storagev1.VolumeAttachment] {
	isThere := false
	s := kube.NewStore(map[string]kube.Index[*storagev1.VolumeAttachment]{kube.ByVolume: func(*storagev1.VolumeAttachment) []string {
		if !isThere {
			return []string{"v"} // so that it is asked about
		}
		look()
		return nil
	}})
	s.Show(&storagev1.VolumeAttachment{})
	isThere = true
	return s
}

// TestReleasedWhileItIsLookedAt: the cache learns within one look that the volume is released. Catches a room that has asked before that whether an
// attempt has to come off the record, and deletes what the next process would make anew.
func TestReleasedWhileItIsLookedAt(t *testing.T) {
	v := released()
	v.Status.Phase = corev1.VolumeBound
	h := world(t, v)
	looks, settled := 0, 0
	h.Driver.Next("DeleteVolume", kit.Reply{Meanwhile: func() {
		if settled == 0 {
			t.Error("deleted before it was settled", h.Trace())
		}
	}})
	startWith(h, func(d *volume.Deps) {
		d.Attachments = looked(func() {
			if looks++; looks == 1 {
				kit.Edit(h.API, key, kit.Released)
				h.Stores.Sync()
			}
		})
		d.Settle = func(context.Context, *corev1.PersistentVolume) (bool, error) {
			settled++
			return true, nil
		}
	})
	h.Enqueue("volume", keyOf("v"))
	h.Settle()
	if _, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: "v"}); ok || len(h.Driver.Inventory()) != 0 || looks == 0 {
		t.Error("it is not deleted", looks, h.Trace())
	}
}
