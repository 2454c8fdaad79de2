// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// random plays a user, a clumsy administrator, a moody driver and a slow API server against the program,
// with restarts between. The seed is printed with a failure.
type random struct {
	*rand.Rand
	h *kit.Harness
	// secretive drivers do the work and then answer that they may not have.
	secretive bool
}

var randomNames = []string{"a", "b", "c"}

func (r random) pick(names []string) string { return names[r.IntN(len(names))] }

// act does one random thing. Codes that leave a driver's outcome open for ever (Internal after the work was
// done) are left out: there a snapshot may stay behind, and an event says so.
func (r random) act() {
	h, name := r.h, r.pick(randomNames)
	eachContent := func(edit func(*kube.Content)) {
		for _, c := range kit.All[*kube.Content](h.API) {
			if r.IntN(2) == 0 {
				kit.Edit(h.API, kube.KeyOf(c), edit)
			}
		}
	}
	switch r.IntN(14) {
	case 0, 1, 2, 3:
		if _, there := kit.Read[*snapv1.VolumeSnapshot](h.API, key(name)); !there {
			s := kit.Snapshot(name, "data")
			s.UID = "" // each life of a name has its own
			h.Put(s)
		}
	case 4, 5, 6:
		userDeletes(name)(h)
	case 7:
		for _, c := range kit.All[*kube.Content](h.API) {
			kit.Remove[*kube.Content](h.API, kube.KeyOf(c))
			break
		}
	case 8:
		eachContent(func(c *kube.Content) { kube.RemoveAnnotation(c, wellknown.AnnBeingCreated, wellknown.AnnBeingDeleted) })
	case 9:
		eachContent(func(c *kube.Content) { kube.SetAnnotation(c, "x", fmt.Sprint(r.IntN(9))) })
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
		h.Lag(r.IntN(5))
		h.Restart()
		both(h)
	}
}

func runRandom(t *testing.T, seed uint64) {
	r := random{rand.New(rand.NewPCG(seed, 1)), kit.New(t), seed%2 == 0}
	h := r.h
	disk(h)
	h.Driver.ReadyAfter = r.IntN(3)
	both(h)
	for range 25 {
		r.act()
		h.Horizon = time.Duration(r.IntN(3)) * time.Second
		h.Settle()
	}
	h.Lag(0)
	h.Horizon = 4 * time.Hour
	h.Settle()
	if wrong := checkInvariants(h); len(wrong) > 0 {
		t.Errorf("seed %d:\n%s\n\neffects:\n%s\n\nturns:\n%s", seed, strings.Join(wrong, "\n"), strings.Join(h.Log.Lines(), "\n"), h.Trace())
	}
}

// checkInvariants holds when all is quiet, whatever happened before.
func checkInvariants(h *kit.Harness) (wrong []string) {
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	handles, alive := map[string]bool{}, map[string]bool{}
	for _, s := range kit.All[*snapv1.VolumeSnapshot](h.API) {
		alive[string(s.UID)] = true
		if s.DeletionTimestamp != nil {
			complain("snapshot %s cannot go: %v", s.Name, s.Finalizers)
		}
		if s.Status != nil && s.Status.Error == nil && !isReady(s) {
			complain("snapshot %s is neither ready nor failing: %+v", s.Name, s.Status)
		}
		if needs := snapshot.UsesSource(s); needs && len(claimFinalizers(h)) == 0 {
			complain("I9 snapshot %s needs its claim, which nobody protects", s.Name)
		}
	}
	for _, c := range kit.All[*kube.Content](h.API) {
		if !alive[string(c.Spec.VolumeSnapshotRef.UID)] {
			complain("I4 content %s is left without snapshot: %v %v", c.Name, c.Annotations, c.DeletionTimestamp)
		}
		if c.Status != nil && c.Status.SnapshotHandle != nil {
			handles[*c.Status.SnapshotHandle] = true
		}
	}
	for _, line := range h.Driver.Inventory() {
		if words := strings.Fields(line); words[0] == "snapshot" && !handles[kit.SnapshotHandle(words[1])] {
			complain("I4 the driver holds %s for nobody", words[1])
		}
	}
	if needed := slices.ContainsFunc(kit.All[*snapv1.VolumeSnapshot](h.API), snapshot.UsesSource); !needed && len(claimFinalizers(h)) > 0 {
		complain("I9 the claim is protected for nobody")
	}
	return append(wrong, checkCalls(h)...)
}

// checkCalls reads the order of effects: no create without a mark that the API server has acknowledged, no
// deletion of what a living snapshot holds.
func checkCalls(h *kit.Harness) (wrong []string) {
	marked := map[string]bool{}
	for _, line := range h.Log.Lines() {
		words := strings.Fields(line)
		switch {
		case words[0] == "create" && words[1] == "volumesnapshotcontents",
			words[0] == "patch" && words[1] == "volumesnapshotcontents" && strings.Contains(line, wellknown.AnnBeingCreated+`":"yes"`):
			marked[strings.TrimPrefix(words[2], "snapcontent-")] = true
		case words[0] == "driver" && words[1] == "CreateSnapshot" && !marked[strings.TrimPrefix(words[2], "snapshot-")]:
			wrong = append(wrong, "I1 no mark before: "+line)
		}
	}
	return wrong
}

func TestRandomLives(t *testing.T) {
	runs := uint64(40)
	if testing.Short() {
		runs = 10
	}
	for seed := range runs {
		runRandom(t, seed)
		if t.Failed() {
			return
		}
	}
}
