// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// A snapshot that went with our last write stays in the cache until the watch tells of it. Catches a room that looks at it once
// more then: it reads a content that is gone and patches a snapshot that is gone, some of each hundred when many are deleted.
func TestSnapshotThatWentIsLeftAlone(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	userTakes("snap")(h)
	h.Settle()
	s := snap(t, h, "snap")
	name := *s.Status.BoundVolumeSnapshotContentName
	h.Restart()
	// Only what this room is told counts from here on.
	c, _ := binder(h, Own)
	kit.Edit(h.API, kube.Key{Name: name}, func(o *kube.Content) { o.Finalizers = nil })
	kit.Remove[*kube.Content](h.API, kube.Key{Name: name})
	userDeletes("snap")(h)
	c.Stance.Look(h.Ctx)
	before := len(h.API.Requests())
	h.Stores.Hold()
	for range 3 {
		if _, err := c.Reconcile(h.Ctx, reconcile.Key{Namespace: kit.Namespace, Name: "snap"}); err != nil {
			t.Error(err)
		}
	}
	counts := map[string]int{}
	for _, r := range h.API.Requests()[before:] {
		counts[r.Verb+" "+r.Resource]++
	}
	if diff := cmp.Diff(map[string]int{"get volumesnapshotcontents": 1, "patch volumesnapshots": 1}, counts); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if _, ok := kit.Read[*snapv1.VolumeSnapshot](h.API, key("snap")); ok {
		t.Errorf("it is still there, held by %v", wellknown.FinalizerSnapshotBound)
	}
	h.Stores.Sync()
	if c.Snapshots.HasGone(s) {
		t.Error("it is still remembered")
	}
}

// trap is a clock that does something when it is looked at.
type trap struct {
	clock.PassiveClock
	spring func()
}

func (c trap) Now() time.Time {
	c.spring()
	return c.PassiveClock.Now()
}

// A snapshot that goes during a look is forgotten, although the watch has told of its end just before something is noted of it. Catches
// a room that goes on measuring it for ever.
func TestSnapshotThatGoesDuringTheLook(t *testing.T) {
	h := kit.New(t)
	disk(h)
	c, _ := binder(h, Own)
	c.Stance.Look(h.Ctx)
	userTakes("snap")(h)
	s, went := snap(t, h, "snap"), false
	c.meters.clock = trap{h.Clock, func() {
		if !went {
			went = true
			userDeletes("snap")(h)
			c.OnSnapshot(kube.Change[*snapv1.VolumeSnapshot]{Old: s, Deleted: true})
		}
	}}
	if _, err := c.Reconcile(h.Ctx, reconcile.Key{Namespace: kit.Namespace, Name: "snap"}); err != nil && !kube.IsGone(err) {
		t.Error(err)
	}
	if !went || len(c.meters.open) > 0 {
		t.Errorf("measured: %v\n%v", c.meters.open, h.State())
	}
}
