// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// Thousands of lives: go test ./pkg/controller/volumesnapshot -run TestRandomLives -runs 5000 -timeout 2h
// The life that failed: go test ./pkg/controller/volumesnapshot -run TestRandomLives -seed 17
var (
	runs = flag.Uint64("runs", 200, "how many random lives TestRandomLives plays")
	seed = flag.Int64("seed", -1, "the one life that TestRandomLives plays, instead of many")
)

// random plays a user, a clumsy administrator, a thief, a moody driver and a slow API server against the program, which is
// killed between any two effects.
type random struct {
	*rand.Rand
	h *kit.Harness
	m mortal
	// secretive drivers do the work and then answer that they may not have.
	secretive bool
	watch     *witness
}

// immortal is more effects than a life has.
const immortal = 1 << 40

var randomNames = []string{"a", "b", "c"}

func (r *random) pick(names []string) string { return names[r.IntN(len(names))] }

// act does one random thing. Codes that leave a driver's outcome open for ever (Internal after the work was
// done) are left out: there a snapshot may stay behind, and an event says so.
func (r *random) act() {
	h, name := r.h, r.pick(randomNames)
	switch r.IntN(18) {
	case 0, 1, 2, 3:
		r.create(name, func(name string) *snapv1.VolumeSnapshot { return kit.Snapshot(name, "data") })
	case 4, 5, 6:
		userDeletes(name)(h)
	case 7:
		for _, c := range r.contents() {
			kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
			break
		}
	case 8:
		// A mark that is wiped in the instant before its process dies is beyond what anybody can know.
		r.m.left.Store(immortal)
		r.eachContent(func(c *kube.Content) { kube.RemoveAnnotation(c, wellknown.AnnBeingCreated, wellknown.AnnBeingDeleted) })
		r.settle(5 * time.Second)
	case 9:
		r.eachContent(func(c *kube.Content) { kube.SetAnnotation(c, "x", fmt.Sprint(r.IntN(9))) })
	case 10:
		code := []codes.Code{codes.DeadlineExceeded, codes.Unavailable, codes.Aborted, codes.ResourceExhausted}[r.IntN(4)]
		h.Driver.Next("CreateSnapshot", kit.Reply{Code: code, Done: r.secretive && r.IntN(2) == 0, Times: 1 + r.IntN(3)})
	case 11:
		code := codes.InvalidArgument
		if r.secretive {
			code = codes.PermissionDenied // proves nothing; after work that was not told of, another one would be a lie
		}
		h.Driver.Next(r.pick([]string{"CreateSnapshot", "DeleteSnapshot", "GetSnapshot"}), kit.Reply{Code: code, Times: 1 + r.IntN(2)})
	case 12:
		h.API.Conflict(r.pick([]string{"volumesnapshots", "volumesnapshotcontents", "persistentvolumeclaims"}), 1+r.IntN(2))
		h.API.Lose(r.pick([]string{"patch", "create", "delete"}), r.pick([]string{"volumesnapshots", "volumesnapshotcontents", "volumesnapshotcontents/status"}),
			apierrors.NewServerTimeout(schema.GroupResource{}, "x", 1), 1)
	case 13:
		r.live(r.IntN(5))
	case 14:
		r.m.left.Store(int64(1 + r.IntN(12)))
	case 15:
		policy := []snapv1.DeletionPolicy{snapv1.VolumeSnapshotContentDelete, snapv1.VolumeSnapshotContentRetain}[r.IntN(2)]
		r.eachContent(func(c *kube.Content) { c.Spec.DeletionPolicy = policy })
	case 16:
		if r.IntN(2) == 0 {
			userDeletes("thief")(h)
			return
		}
		r.create("thief", func(name string) *snapv1.VolumeSnapshot { return kit.Snapshot(name, "", kit.FromContent(innocent)) })
	case 17:
		r.tearOut(name)
	}
}

// tearOut takes a snapshot away as the API server does when the deletion began before our finalizers came.
func (r *random) tearOut(name string) {
	if _, there := kit.Read[*snapv1.VolumeSnapshot](r.h.API, key(name)); there {
		kit.Edit(r.h.API, key(name), func(s *snapv1.VolumeSnapshot) { s.Finalizers = nil })
		userDeletes(name)(r.h)
	}
}

func (r *random) create(name string, build func(string) *snapv1.VolumeSnapshot) {
	if _, there := kit.Read[*snapv1.VolumeSnapshot](r.h.API, key(name)); !there {
		s := build(name)
		s.UID = "" // each life of a name has its own
		r.h.Put(s)
	}
}

// contents are all but the innocent one, whose owner nobody disturbs.
func (r *random) contents() (all []*kube.Content) {
	for _, c := range kit.All[*kube.Content](r.h.API) {
		if c.Name != innocent {
			all = append(all, c)
		}
	}
	return all
}

func (r *random) eachContent(edit func(*kube.Content)) {
	for _, c := range r.contents() {
		if r.IntN(2) == 0 {
			kit.Edit(r.h.API, kube.KeyOf(c), edit)
		}
	}
}

// live begins a new life of the program, with caches that are behind.
func (r *random) live(lag int) {
	r.h.Lag(lag)
	r.h.Restart()
	r.begin()
}

func (r *random) begin() {
	r.m = mortal{Client: r.h.API, driver: r.h.Driver, left: &atomic.Int64{}, deaf: r.IntN(2) == 0, creating: r.watch.creating, erasing: r.watch.erasing}
	r.m.left.Store(immortal)
	r.m.program(r.h)
}

// settle plays until quiet, through the deaths that come meanwhile.
func (r *random) settle(horizon time.Duration) {
	r.h.Horizon = horizon
	r.h.Settle()
	for r.m.isDead() {
		r.live(r.IntN(5))
		r.h.Settle()
	}
}

func runRandom(t *testing.T, seed uint64) {
	h := kit.New(t)
	r := &random{Rand: rand.New(rand.NewPCG(seed, 1)), h: h, secretive: seed%2 == 0}
	disk(h)
	r.watch = newWitness(h)
	h.Driver.ReadyAfter = r.IntN(3)
	r.begin()
	r.settle(time.Second)
	r.watch.begin()
	for range 25 {
		r.act()
		r.settle(time.Duration(r.IntN(3)) * time.Second)
	}
	userDeletes("thief")(h)
	r.live(0)
	r.settle(4 * time.Hour)
	if wrong := r.watch.judge(r); len(wrong) > 0 {
		t.Errorf("seed %d:\n%s\n\neffects:\n%s\n\nturns:\n%s", seed, strings.Join(wrong, "\n"), strings.Join(r.watch.lines, "\n"), h.Trace())
	}
}

// TestRandomLives (I1, I2, I3, I4, I5, I6, I7, I8, I9, I10): whatever happens in whatever order, and wherever the program is killed,
// none of the promises is broken; see witness.
func TestRandomLives(t *testing.T) {
	if *seed >= 0 {
		runRandom(t, uint64(*seed))
		return
	}
	many := *runs
	if testing.Short() {
		many = min(many, 20)
	}
	t.Logf("seeds 0 to %d", many-1)
	for seed := range many {
		runRandom(t, seed)
		if t.Failed() {
			return
		}
	}
}
