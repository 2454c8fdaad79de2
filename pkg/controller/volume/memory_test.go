// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestVolumeThatGoesDuringTheLook: somebody takes the finalizer off while the driver deletes, and the watch tells of the end before the
// answer. Catches a room that notes the answer and never hears of the volume again.
func TestVolumeThatGoesDuringTheLook(t *testing.T) {
	h := kit.New(t)
	volume := kit.Volume("pv", kit.ClaimedBy(kit.Claim("data")), func(v *corev1.PersistentVolume) {
		v.Finalizers, v.Status.Phase = []string{wellknown.FinalizerVolume}, corev1.VolumeReleased
	})
	h.Put(volume)
	c := New(Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
		Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Claims: h.Stores.Claims, RetryStart: time.Second, RetryMax: time.Minute,
	})
	h.Driver.Next("DeleteVolume", kit.Reply{Meanwhile: func() {
		kit.Edit(h.API, kube.KeyOf(volume), func(v *corev1.PersistentVolume) { v.Finalizers = nil })
		kit.Remove[*corev1.PersistentVolume](h.API, kube.KeyOf(volume))
		c.KeysOfVolume(kube.Change[*corev1.PersistentVolume]{Old: volume, Deleted: true})
	}})
	if _, err := c.Reconcile(h.Ctx, reconcile.Key{Name: volume.Name}); err != nil {
		t.Error(err)
	}
	if m := c.memory; len(h.Driver.Calls("DeleteVolume")) != 1 || len(m.deleted)+len(m.missing)+len(m.sent)+len(m.seen) > 0 {
		t.Errorf("remembered: %+v", m)
	}
}

// TestTwinThatGoesDuringTheCall: the twin goes while the driver deletes, and the watch tells of its end before the answer.
func TestTwinThatGoesDuringTheCall(t *testing.T) {
	h := kit.New(t)
	build := func(name string) *corev1.PersistentVolume {
		return kit.Volume(name, kit.ClaimedBy(kit.Claim("of-"+name)), func(v *corev1.PersistentVolume) {
			v.Finalizers, v.Status.Phase = []string{wellknown.FinalizerVolume}, corev1.VolumeReleased
			v.Spec.CSI.VolumeHandle = "handle"
		})
	}
	pv, twin := build("pv"), build("twin")
	h.Put(pv, twin)
	c := New(Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
		Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Claims: h.Stores.Claims, RetryStart: time.Second, RetryMax: time.Minute,
	})
	h.Driver.Next("DeleteVolume", kit.Reply{Meanwhile: func() {
		kit.Edit(h.API, kube.KeyOf(twin), func(v *corev1.PersistentVolume) { v.Finalizers = nil })
		kit.Remove[*corev1.PersistentVolume](h.API, kube.KeyOf(twin))
		c.KeysOfVolume(kube.Change[*corev1.PersistentVolume]{Old: twin, Deleted: true})
	}})
	if _, err := c.Reconcile(h.Ctx, reconcile.Key{Name: pv.Name}); err != nil {
		t.Error(err)
	}
	c.KeysOfVolume(kube.Change[*corev1.PersistentVolume]{Old: pv, Deleted: true})
	if m := c.memory; len(h.Driver.Calls("DeleteVolume")) != 1 || len(m.deleted)+len(m.missing)+len(m.sent)+len(m.seen) > 0 {
		t.Errorf("remembered for ever: %+v", m)
	}
}

// TestStrandedVolumeGoes: a volume that only a user can help waits for a change, and goes by hand. Catches a room that shows it as waiting
// for ever.
func TestStrandedVolumeGoes(t *testing.T) {
	h := kit.New(t)
	c := New(Deps{DriverName: kit.DriverName, Clock: h.Clock, Volumes: h.Stores.Volumes})
	volume := kit.Volume("pv")
	c.queue.Add(reconcile.Key{Name: volume.Name})
	if n := len(c.Status().Work); n != 1 {
		t.Fatal(n)
	}
	c.KeysOfVolume(kube.Change[*corev1.PersistentVolume]{Old: volume, Deleted: true})
	if work := c.Status().Work; len(work) != 0 {
		t.Error(work)
	}
}
