// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// forgetful is a driver that has GetSnapshot in some of its lives, and a list perhaps, gives a new id to each snapshot, may lose what is not ready, and
// fails as the dice say.
type forgetful struct {
	*dice
	h *kit.Harness
	// byName are its snapshots, and count those that it ever took.
	byName map[string]*stored
	count  int
	// isCalm is for the end, when nothing fails any more.
	isCalm bool
	// can is what it says of itself.
	can []capability.Controller
	// hides says that its list lacks what is not ready, and denies that it says NotFound for what it does not have.
	hides, denies bool
	// meanwhile happens within some calls.
	meanwhile func()
}

type stored struct {
	id, source string
	taken      time.Time
	// waits is how often it has to be asked for until it is ready.
	waits int
}

func (s *stored) answer() *csi.Snapshot {
	s.waits = max(s.waits-1, 0)
	return &csi.Snapshot{SnapshotId: s.id, SourceVolumeId: s.source, CreationTime: timestamppb.New(s.taken), ReadyToUse: s.waits == 0, SizeBytes: 5}
}

// dice are the choices of one run, and what came of them.
type dice struct {
	*rand.Rand
	said []string
}

func (d *dice) say(format string, args ...any) { d.said = append(d.said, fmt.Sprintf(format, args...)) }

// fails chooses whether a call fails before it has an effect, or after.
func (d *forgetful) fails(op fault.Operation) (before, after error) {
	if d.isCalm {
		return nil, nil
	}
	if d.Intn(8) == 0 {
		d.meanwhile()
	}
	early := []codes.Code{codes.DeadlineExceeded, codes.Unavailable, codes.Aborted, codes.Internal, codes.Unknown, codes.ResourceExhausted, codes.PermissionDenied, codes.Canceled}
	late := []codes.Code{codes.DeadlineExceeded, codes.Unavailable, codes.Internal, codes.Unknown, codes.Canceled}
	switch x := d.Intn(10); {
	case x < 2:
		return fault.New(op, status.Error(early[d.Intn(len(early))], "before")), nil
	case x < 5 && op != fault.ListSnapshots && op != fault.GetSnapshot:
		return nil, fault.New(op, status.Error(late[d.Intn(len(late))], "after"))
	}
	return nil, nil
}

func (d *forgetful) CreateSnapshot(_ context.Context, request *csi.CreateSnapshotRequest) (*csi.Snapshot, error) {
	before, after := d.fails(fault.CreateSnapshot)
	if before != nil {
		d.say("create: %v", before)
		return nil, before
	}
	s := d.byName[request.GetName()]
	if s == nil {
		d.count++
		s = &stored{id: fmt.Sprint("id-", d.count), source: request.GetSourceVolumeId(), taken: d.h.Clock.Now(), waits: 1 + d.Intn(20)}
		d.byName[request.GetName()] = s
	}
	answer := s.answer()
	d.say("create: %s, ready %v, %v", s.id, answer.GetReadyToUse(), after)
	if after != nil {
		return nil, after
	}
	return answer, nil
}

func (d *forgetful) DeleteSnapshot(_ context.Context, request *csi.DeleteSnapshotRequest) error {
	before, after := d.fails(fault.DeleteSnapshot)
	d.say("delete %s: %v %v", request.GetSnapshotId(), before, after)
	if before != nil {
		return before
	}
	for name, s := range d.byName {
		if s.id == request.GetSnapshotId() {
			delete(d.byName, name)
		}
	}
	return after
}

func (d *forgetful) GetSnapshot(_ context.Context, request *csi.GetSnapshotRequest) (*csi.Snapshot, error) {
	if err, _ := d.fails(fault.GetSnapshot); err != nil {
		d.say("get: %v", err)
		return nil, err
	}
	for _, s := range d.byName {
		if s.id == request.GetSnapshotId() {
			d.say("get: %s", s.id)
			return s.answer(), nil
		}
	}
	d.say("get: no %s", request.GetSnapshotId())
	return nil, fault.New(fault.GetSnapshot, status.Error(codes.NotFound, "x"))
}

func (d *forgetful) ListSnapshots(_ context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	if err, _ := d.fails(fault.ListSnapshots); err != nil {
		d.say("list: %v", err)
		return nil, err
	}
	for _, s := range d.byName {
		if s.id != request.GetSnapshotId() {
			continue
		}
		if answer := s.answer(); answer.GetReadyToUse() || !d.hides {
			d.say("list: %s, ready %v", s.id, answer.GetReadyToUse())
			return &csi.ListSnapshotsResponse{Entries: []*csi.ListSnapshotsResponse_Entry{{Snapshot: answer}}}, nil
		}
	}
	d.say("list: no %s", request.GetSnapshotId())
	if d.denies {
		return nil, fault.New(fault.ListSnapshots, status.Error(codes.NotFound, "x"))
	}
	return &csi.ListSnapshotsResponse{}, nil
}

// life is one content under random faults.
type life struct {
	t       *testing.T
	h       *kit.Harness
	driver  *forgetful
	content *kube.Content
	// loses says that the driver may lose what is not ready.
	loses bool
	// isInside is set within a call, where no process can end in a harness of one thread.
	isInside, isGone bool
	rules            []func()
}

func newLife(t *testing.T, seed int64) *life {
	t.Helper()
	d := &forgetful{dice: &dice{Rand: rand.New(rand.NewSource(seed))}, h: kit.New(t), byName: map[string]*stored{}}
	d.h.MaxTurns = 100_000
	l := &life{t: t, h: d.h, driver: d, loses: d.Intn(2) == 0}
	d.can = []capability.Controller{csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT}
	if d.Intn(4) > 0 {
		d.can = append(d.can, csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS)
	}
	d.hides, d.denies = d.Intn(2) == 0, d.Intn(2) == 0
	d.meanwhile = func() {
		if !l.isInside {
			l.isInside = true
			l.happen()
			l.isInside = false
		}
	}
	d.h.Put(kit.SnapshotClass(kit.SnapshotClassName), kit.Secret("s", map[string]string{"k": "v"}))
	l.begin()
	hasSecret := d.Intn(3) == 0
	l.content = bound(d.h, func(c *kube.Content) {
		if hasSecret {
			kube.SetAnnotation(c, wellknown.AnnSnapshotDeletionSecretName, "s")
			kube.SetAnnotation(c, wellknown.AnnSnapshotDeletionSecretNamespace, kit.Namespace)
		}
	})
	return l
}

// begin starts a process, of a driver that may have learnt GetSnapshot or forgotten it.
func (l *life) begin() {
	can := slices.Clip(l.driver.can)
	if l.driver.Intn(3) == 0 {
		l.driver.say("-- with GetSnapshot")
		can = append(can, csi.ControllerServiceCapability_RPC_GET_SNAPSHOT)
	}
	live(l.h, func(deps *Deps) { deps.Driver, deps.Capabilities = l.driver, capability.Of(nil, can...) })
}

// fail lets writes fail, before they have an effect or after.
func (l *life) fail(resource string, isDone bool) {
	l.driver.say("-- %s fails, done %v", resource, isDone)
	l.rules = append(l.rules, l.h.API.Script(kit.Rule{
		Verb: "patch", Resource: resource, Err: apierrors.NewInternalError(errors.New("no answer")), Times: 1 + l.driver.Intn(3), Done: isDone,
	}))
}

func (l *life) leave() {
	if !l.isGone {
		l.driver.say("-- the snapshot goes")
		deleteBoth(l.h, l.content)
		l.isGone = true
	}
}

// happen lets one thing go wrong.
func (l *life) happen() {
	switch l.driver.Intn(9) {
	case 0, 1:
		if !l.isInside {
			l.driver.say("-- the process ends")
			l.h.Restart()
			l.begin()
		}
	case 2:
		l.leave()
	case 3:
		l.fail("volumesnapshotcontents/status", true)
	case 4:
		l.fail("volumesnapshotcontents/status", false)
	case 5:
		l.fail("volumesnapshotcontents", true)
	case 6, 7:
		for name, s := range l.driver.byName {
			if l.loses && s.waits > 0 {
				l.driver.say("-- %s is lost", s.id)
				delete(l.driver.byName, name)
			}
		}
	case 8:
		l.driver.say("-- the secret goes")
		kit.Remove[*corev1.Secret](l.h.API, kube.Key{Namespace: kit.Namespace, Name: "s"})
	}
}

func (l *life) pass() {
	l.h.Horizon = time.Duration(l.driver.Intn(120)) * time.Second
	l.h.Settle()
}

func (l *life) run() {
	for range 3 + l.driver.Intn(6) {
		l.pass()
		if l.driver.Intn(2) == 0 {
			l.h.Clock.Step(2 * time.Minute)
		}
		l.happen()
	}
	l.leave()
	l.pass()
	l.driver.isCalm = true
	for _, end := range l.rules {
		end()
	}
	l.h.Horizon = 6 * time.Hour
	l.h.Settle()
}

// Thousands of lives: go test ./pkg/controller/content -run TestRandomLives -first 300 -runs 5000
var (
	first = flag.Int64("first", 0, "the first life that TestRandomLives plays")
	runs  = flag.Int64("runs", 300, "how many random lives TestRandomLives plays")
)

// eventful are lives that are always played: they end badly if nobody is told of what may have been taken in place of a lost snapshot.
var eventful = []int64{45396, 56895}

// Whatever fails, is lost or goes, and whenever: in the end a content that goes is gone, and so is all that the driver has taken by its name,
// unless it was told that nobody could find out. Catches each order of events that nobody has thought of.
func TestRandomLives(t *testing.T) {
	lives := slices.Clone(eventful)
	for n := range *runs {
		lives = append(lives, *first+n)
	}
	for _, seed := range lives {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newLife(t, seed)
			l.run()
			isTold := strings.Contains(strings.Join(l.h.Log.Lines(), "\n"), wellknown.ReasonSnapshotOutcomeUnknown)
			if left := len(l.driver.byName); left > 0 && !isTold || len(kit.All[*kube.Content](l.h.API)) > 0 {
				t.Errorf("%d snapshots left, objects %v\n%s\n%s", left, l.h.State(), strings.Join(l.driver.said, "\n"), l.h.Trace())
			}
		})
	}
}
