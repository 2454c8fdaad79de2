// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestKeptOffItsClaimIsNotResumed: what is over could not be taken off the record yet, somebody keeps the volume and takes it off its claim, the
// process is killed, and the PersistentVolume is deleted to keep the data.
func TestKeptOffItsClaimIsNotResumed(t *testing.T) {
	for title, edit := range map[string]func(h *kit.Harness, v *corev1.PersistentVolume){
		"claimRef as it was": func(*kit.Harness, *corev1.PersistentVolume) {},
		"claimRef taken off": func(_ *kit.Harness, v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil },
		"claimRef without UID": func(_ *kit.Harness, v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: kit.Namespace, Name: "heir"}
		},
	} {
		t.Run(title, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.Play(kit.Binder(h.API))
			h.Horizon = time.Minute
			var mend func()
			h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: func() {
				mend = h.API.Script(kit.Rule{Verb: "patch", Resource: "configmaps", Err: apierrors.NewInternalError(fmt.Errorf("etcd"))})
			}})
			startRecorded(h)
			h.Settle()
			pv := kube.Key{Name: name}
			kit.Edit(h.API, pv, func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			})
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
			h.API.Script(kit.Rule{Verb: "patch", Resource: "persistentvolumes", Meanwhile: func() {
				if on := onRecord(h); len(on) != 0 {
					t.Error("the finalizer goes while there is an entry", on)
				}
			}})
			h.Settle() // the finalizer waits for the record
			kit.Edit(h.API, pv, func(v *corev1.PersistentVolume) { edit(h, v) })
			h.Settle()
			kit.Remove[*corev1.PersistentVolume](h.API, pv)
			h.Settle()
			h.Restart()
			mend()
			startRecorded(h)
			h.Horizon = time.Hour
			h.Settle()
			if left := h.Driver.Inventory(); len(left) != 1 || len(h.Driver.Calls("DeleteVolume")) != 0 {
				t.Errorf("the data that was kept is gone: left %v\n%v\n%s", left, h.Log.Lines(), h.Trace())
			}
		})
	}
}

// TestKeptWithoutTheRightIsNotResumed: a process was killed right after it wrote a PersistentVolume, and the next one has no right to the record. Meanwhile the
// volume is kept, taken off its claim, and its PersistentVolume deleted; then the right comes.
func TestKeptWithoutTheRightIsNotResumed(t *testing.T) {
	for title, edit := range map[string]func(v *corev1.PersistentVolume){
		"claimRef as it was": func(*corev1.PersistentVolume) {},
		"claimRef taken off": func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil },
	} {
		t.Run(title, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.Play(kit.Binder(h.API))
			h.Horizon = time.Second
			var grant func()
			h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: func() { grant = h.API.Deny("patch", "configmaps") }})
			startRecorded(h)
			h.Settle()
			h.Restart()
			c := startRecorded(h)
			h.Settle()
			pv := kube.Key{Name: name}
			kit.Edit(h.API, pv, func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
				edit(v)
			})
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
			h.Horizon = time.Minute
			h.Settle()
			kit.Remove[*corev1.PersistentVolume](h.API, pv)
			h.Settle()
			if _, stays := kit.Read[*corev1.PersistentVolume](h.API, pv); stays {
				t.Fatal("it stays", h.Trace())
			}
			grant()
			keys, err := c.Begin(h.Ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range keys {
				h.Enqueue("claim", k)
			}
			h.Horizon = time.Hour
			h.Settle()
			if left := h.Driver.Inventory(); len(left) != 1 || len(h.Driver.Calls("DeleteVolume")) != 0 {
				t.Errorf("the data that was kept is gone: left %v\n%v\n%s", left, effects(h), h.Trace())
			}
		})
	}
}
