// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"context"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestOneEventOfManySnapshotters (B079): what is wrong with a snapshot that no driver can be found for, or whose driver nobody
// serves, is seen by the snapshotter of each other driver. Catches that each of them writes an event of its own, and one that
// leaves it to another which may not be there: a lone one tells, too.
func TestOneEventOfManySnapshotters(t *testing.T) {
	for name, drivers := range map[string][]string{"one": {"a.example"}, "three": {"a.example", "b.example", "c.example"}} {
		t.Run(name, func(t *testing.T) {
			h := kit.New(t)
			disk(h)
			h.Put(kit.SnapshotClass("slip", func(c *snapv1.VolumeSnapshotClass) { c.Driver = "tandme.csi.example" }))
			var writers []*kube.EventWriter
			for i, driver := range drivers {
				// Where two processes write an event in the same nanosecond it has one name by chance.
				w := kube.NewEventWriter(h.API, driver, driver+"-0", testingclock.NewFakeClock(kit.Start.Add(time.Duration(i)*time.Second)))
				writers = append(writers, w)
				_, room := binder(h, Own, func(d *Deps) { d.DriverName, d.Recorder = driver, w })
				room.Name = driver
				h.Add(room)
			}
			userTakes("noclass", func(s *snapv1.VolumeSnapshot) { s.Spec.VolumeSnapshotClassName = kit.Ptr("missing") })(h)
			userTakes("slip", func(s *snapv1.VolumeSnapshot) { s.Spec.VolumeSnapshotClassName = kit.Ptr("slip") })(h)
			h.Put(kit.Snapshot("nocontent", "", kit.FromContent("old"), func(s *snapv1.VolumeSnapshot) { s.Spec.VolumeSnapshotClassName = nil }))
			h.Horizon = 10 * time.Minute
			h.Settle()
			ended, end := context.WithCancel(t.Context())
			end()
			for _, w := range writers {
				w.Run(ended, time.Minute)
			}
			told := map[string]int{}
			for _, e := range kit.All[*corev1.Event](h.API) {
				told[e.InvolvedObject.Name+" "+e.Type+" "+e.Reason]++
			}
			for _, want := range []string{
				"noclass Warning " + wellknown.ReasonGetSnapshotClassFailed, "slip Warning " + wellknown.ReasonSnapshotUnserved,
				"nocontent Warning " + wellknown.ReasonSnapshotContentMissing,
			} {
				if told[want] != 1 {
					t.Errorf("%s: told %d times", want, told[want])
				}
			}
			if len(told) != 3 {
				t.Errorf("told: %v", told)
			}
		})
	}
}

// TestCorrectedClassHasItsTime: whoever corrects the driver in a class, as the event advises, makes the snapshot that of a driver which has
// had no time yet. Catches a binder that goes by the age of the snapshot, and says at once that nobody serves that driver.
func TestCorrectedClassHasItsTime(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	h.Put(kit.SnapshotClass("theirs", func(c *snapv1.VolumeSnapshotClass) { c.Driver = "disc.example" }))
	userTakes("snap", func(s *snapv1.VolumeSnapshot) { s.Spec.VolumeSnapshotClassName = kit.Ptr("theirs") })(h)
	h.Horizon = time.Hour
	h.Settle()
	if n := warnings(h, wellknown.ReasonSnapshotUnserved); n != 1 {
		t.Fatalf("told %d times: %v", n, h.Recorder.Events())
	}
	kit.Edit(h.API, kube.Key{Name: "theirs"}, func(c *snapv1.VolumeSnapshotClass) { c.Driver = "disk.example" })
	h.Horizon = time.Minute
	h.Settle()
	if n := warnings(h, wellknown.ReasonSnapshotUnserved); n != 1 {
		t.Errorf("the new driver has had no time, and is told of: %v", h.Recorder.Events())
	}
	h.Horizon = time.Hour
	h.Settle()
	if n := warnings(h, wellknown.ReasonSnapshotUnserved); n != 2 {
		t.Errorf("it is not told that nobody serves the new driver: %v", h.Recorder.Events())
	}
}
