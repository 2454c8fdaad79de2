// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"fmt"
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestClassOfAnotherDriverBindsNothing (W8): a VolumeSnapshot that is not bound yet names a content of our driver and a class of
// another. Catches a binder that writes that class, or the secret that it names, into the content: users who may write
// VolumeSnapshots only would choose whose secret the driver gets with DeleteSnapshot.
func TestClassOfAnotherDriverBindsNothing(t *testing.T) {
	const want = `VolumeSnapshotClass foreign is of driver "other.example", but VolumeSnapshotContent c is of driver "tandem.csi.example"; name a VolumeSnapshotClass of driver tandem.csi.example, or none`
	for name, class := range map[string]*string{"the content has a class": kit.Ptr(kit.SnapshotClassName), "the content has none": nil} {
		h := kit.New(t)
		disk(h)
		h.Driver.PutSnapshot("h1", kit.VolumeHandle("pv-data"), 1<<30)
		h.Put(kit.SnapshotClass("foreign", func(c *snapv1.VolumeSnapshotClass) {
			c.Driver = "other.example"
			c.Parameters = map[string]string{wellknown.ParamSnapshotterSecretName: "theirs", wellknown.ParamSnapshotterSecretNamespace: kit.Namespace}
		}), kit.Secret("theirs", map[string]string{"password": "of-the-other-driver"}))
		both(h)
		h.Put(kit.Snapshot("snap", "", kit.FromContent("c"), func(s *snapv1.VolumeSnapshot) { s.Spec.VolumeSnapshotClassName = kit.Ptr("foreign") }),
			kit.NamedContent("c", func(c *kube.Content) {
				c.Spec.Source = snapv1.VolumeSnapshotContentSource{SnapshotHandle: kit.Ptr(kit.SnapshotHandle("h1"))}
				c.Spec.VolumeSnapshotClassName = class
				c.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: kit.Namespace, Name: "snap"}
			}))
		h.Settle()
		if s := snap(t, h, "snap"); s.Status == nil || s.Status.Error == nil || !strings.Contains(*s.Status.Error.Message, want) {
			t.Errorf("%s: status %+v", name, s.Status)
		}
		// The class is corrected, and the snapshot goes on by itself.
		kit.Edit(h.API, kube.Key{Name: "foreign"}, func(c *snapv1.VolumeSnapshotClass) { c.Driver, c.Parameters = kit.DriverName, nil })
		h.Settle()
		if !isReady(snap(t, h, "snap")) {
			t.Errorf("%s: not ready after the correction\n%s", name, h.Trace())
		}
		userDeletes("snap")(h)
		h.Settle()
		wantNothing(t, h)
		for _, call := range h.Driver.Calls("DeleteSnapshot") {
			if strings.Contains(fmt.Sprint(call), "of-the-other-driver") {
				t.Errorf("%s: the driver got the secret of another: %v", name, call)
			}
		}
	}
}

// TestClassThatBecameAnotherDriversIsTold: between the content and the driver's call the class is made that of another driver. Catches
// a pair of which the one half leaves the content alone without a word and the other takes its own mark for work that goes on.
func TestClassThatBecameAnotherDriversIsTold(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	h.API.Script(kit.Rule{Verb: "create", Resource: "volumesnapshotcontents", Times: 1, Meanwhile: func() {
		kit.Edit(h.API, kube.Key{Name: kit.SnapshotClassName}, func(c *snapv1.VolumeSnapshotClass) { c.Driver = "other.example" })
	}})
	userTakes("snap")(h)
	h.Settle()
	if s := snap(t, h, "snap"); s.Status == nil || s.Status.Error == nil || !strings.Contains(*s.Status.Error.Message, "other.example") {
		t.Errorf("status %+v, events %v", s.Status, h.Recorder.Events())
	}
	kit.Edit(h.API, kube.Key{Name: kit.SnapshotClassName}, func(c *snapv1.VolumeSnapshotClass) { c.Driver = kit.DriverName })
	h.Settle()
	wantReady("snap")(t, h)
}
