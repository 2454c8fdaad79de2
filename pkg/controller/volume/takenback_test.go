// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestTakenBackInOneEdit: a kept volume is prepared for its next claim in one edit, with policy Delete as before and a claimRef that is
// emptied or leads to that claim. Its phase says Released until kube-controller-manager has seen the edit. Catches a deletion that
// believes a phase which is older than the claimRef.
func TestTakenBackInOneEdit(t *testing.T) {
	waiting := kit.Claim("waiting")
	leadTo := func(claim *corev1.PersistentVolumeClaim) func(*corev1.PersistentVolume) {
		return func(v *corev1.PersistentVolume) {
			kit.ClaimedBy(claim)(v)
			v.Status.Phase = corev1.VolumeReleased
		}
	}
	for name, edit := range map[string]func(*corev1.PersistentVolume){
		"claimRef taken off":   func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil },
		"claimRef without uid": func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "" },
		"claimRef by name to a claim that waits": func(v *corev1.PersistentVolume) {
			leadTo(waiting)(v)
			v.Spec.ClaimRef.UID = ""
		},
		"claimRef to a claim that waits": leadTo(waiting),
	} {
		t.Run(name, func(t *testing.T) {
			h := world(t, released(func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			}))
			h.Put(waiting.DeepCopy())
			start(h)
			h.Settle()
			kit.Edit(h.API, key, func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
				edit(v)
			})
			h.Horizon = time.Hour
			h.Settle()
			if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
				t.Errorf("the data is gone: %d DeleteVolume\n%s", len(calls), h.Trace())
			}
		})
	}
}

// TestTakenBackForAClaimOfAnotherNode: the claim that a volume leads to waits for another node, so that no cache here has it.
func TestTakenBackForAClaimOfAnotherNode(t *testing.T) {
	waiting := kit.Claim("waiting", kit.OnNode("n2"))
	h := world(t, released(kit.ClaimedBy(waiting), kit.Released))
	h.Put(waiting)
	c := volume.New(volume.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
		Local: provision.Local{Node: "n1"}, Patience: time.Minute, Claims: kube.NewStore(kube.ClaimIndexes()),
		Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Attachments: h.Stores.Attachments, RetryStart: h.RetryStart, RetryMax: h.RetryMax,
	})
	h.Add(kit.Room{Name: "volume", Reconcile: c.Reconcile, Keys: kit.On(c.KeysOfVolume)})
	h.Horizon = 2 * time.Minute
	h.Settle()
	if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 || !strings.Contains(strings.Join(h.Log.Lines(), "\n"), "claim default/waiting") {
		t.Errorf("%v\n%s", calls, h.Trace())
	}
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(waiting))
	h.Horizon = 30 * time.Minute
	h.Settle()
	if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 1 {
		t.Errorf("the claim is gone: %v\n%s", calls, h.Trace())
	}
}
