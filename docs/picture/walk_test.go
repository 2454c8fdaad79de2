// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// shown are the effects that the picture of a walk shows, of one section or, when that is empty, of all.
func shown(t *testing.T, name, section string) (effects []string) {
	t.Helper()
	src, err := os.ReadFile(name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	d, err := parse(string(src))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range d.effects {
		if section == "" || e.section == section {
			effects = append(effects, e.what)
		}
	}
	if len(effects) == 0 {
		t.Fatalf("%s shows no effect", name)
	}
	return effects
}

// stretch is what is done in a world from some moment on.
type stretch struct {
	h    *kit.Harness
	from int
}

func begin(h *kit.Harness) stretch {
	h.Log.Clear()
	return stretch{h, len(h.API.Requests())}
}

// matches compares the requests to the API server, and then the writes and calls, each in order. Reads are not logged between
// the calls.
func (s stretch) matches(t *testing.T, shown []string) {
	t.Helper()
	var requests []string
	for _, r := range s.h.API.Requests()[s.from:] {
		verb, rest, _ := strings.Cut(r.String(), " ")
		resource, _, _ := strings.Cut(rest, " ")
		requests = append(requests, verb+" "+resource)
	}
	isCall := func(e string) bool { return strings.HasPrefix(e, "driver ") }
	if d := cmp.Diff(slices.DeleteFunc(slices.Clone(shown), isCall), requests); d != "" {
		t.Errorf("requests (-shown +sent):\n%s", d)
	}
	s.matchesDone(t, shown)
}

// matchesDone compares writes and calls only.
func (s stretch) matchesDone(t *testing.T, shown []string) {
	t.Helper()
	var done []string
	for _, line := range s.h.Log.Lines() {
		if words := strings.Fields(line); words[0] != "event" {
			done = append(done, words[0]+" "+words[1])
		}
	}
	isRead := func(e string) bool { return strings.HasPrefix(e, "get ") }
	if d := cmp.Diff(slices.DeleteFunc(slices.Clone(shown), isRead), done); d != "" {
		t.Errorf("writes and calls (-shown +done):\n%s", d)
	}
}

// TestWalksOfVolumes: the pictures show what is done, in the order in which it is done. Catches a picture that is not true any
// more.
func TestWalksOfVolumes(t *testing.T) {
	h := world(t)
	h.Put(kit.Secret("login", nil), kit.Class(kit.ClassName, func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{wellknown.ParamProvisionerSecretName: "login", wellknown.ParamProvisionerSecretNamespace: kit.Namespace}
	}))
	sweep := provisioner(t, h, recording("me"))
	h.Settle()
	s := begin(h)
	h.Put(kit.Claim("data"))
	h.Settle()
	sweep()
	s.matches(t, shown(t, "walk-claim", ""))

	s = begin(h)
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, key("data"))
	h.Settle()
	s.matches(t, shown(t, "walk-deletion", ""))
}

// TestWalkOfARestore leaves out the record, as its picture does.
func TestWalkOfARestore(t *testing.T) {
	h := world(t)
	disk(h, snapv1.VolumeSnapshotContentDelete)
	snapshotter(h)
	h.Put(kit.Snapshot("snap", "data"))
	h.Settle()
	h.Put(kit.Class(kit.ClassName))
	provisioner(t, h, nil)
	h.Settle()
	s := begin(h)
	h.Put(kit.Claim("restored", kit.FromSnapshot("snap")))
	h.Settle()
	s.matches(t, shown(t, "walk-restore", ""))
}

// TestWalksOfSnapshots: the same of snapshots, under either policy.
func TestWalksOfSnapshots(t *testing.T) {
	for _, policy := range []snapv1.DeletionPolicy{snapv1.VolumeSnapshotContentDelete, snapv1.VolumeSnapshotContentRetain} {
		t.Run(string(policy), func(t *testing.T) {
			h := world(t)
			disk(h, policy)
			snapshotter(h)
			s := begin(h)
			h.Put(kit.Snapshot("snap", "data"))
			h.Settle()
			s.matches(t, shown(t, "walk-snapshot", ""))

			s = begin(h)
			kit.Remove[*snapv1.VolumeSnapshot](h.API, key("snap"))
			h.Settle()
			s.matches(t, shown(t, "walk-snapshot-deletion", "deletion policy "+string(policy)))
		})
	}
}

// TestWalkOfAnImport: a content that somebody wrote by hand, in the order in which the command writes the two.
func TestWalkOfAnImport(t *testing.T) {
	h := world(t)
	disk(h, snapv1.VolumeSnapshotContentDelete)
	h.Driver.PutSnapshot("old", kit.VolumeHandle("pv-data"), 1<<30)
	snapshotter(h)
	s := begin(h)
	h.Put(kit.NamedContent("old"), kit.Snapshot("data-snapshot", "", kit.FromContent("old")))
	h.Settle()
	s.matches(t, shown(t, "walk-import", ""))
}

// TestWalkOfTheRecord: the first process ends in its call, and another one finds the claim gone.
func TestWalkOfTheRecord(t *testing.T) {
	h := world(t)
	h.Put(kit.Class(kit.ClassName))
	s := begin(h)
	provisioner(t, h, recording("first"))
	h.Horizon = time.Millisecond // it does not live to repeat the call
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Done: true})
	h.Put(kit.Claim("data"))
	h.Settle()
	h.Restart()
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, key("data"))
	provisioner(t, h, recording("next"))
	h.Horizon = time.Hour
	h.Settle()
	s.matchesDone(t, shown(t, "record", ""))
	if left := h.Driver.Inventory(); len(left) > 0 {
		t.Errorf("left at the driver: %v", left)
	}
}
