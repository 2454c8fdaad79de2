// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	storagev1 "k8s.io/api/storage/v1"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

func failure(code codes.Code) error { return fault.New(fault.CreateVolume, status.Error(code, "x")) }

func said(code codes.Code) string { return "rpc error: code = " + code.String() + " desc = x" }

// T59: every code, with and without topology, with and without a selected node, with the claim there
// and gone.
func TestEveryCode(t *testing.T) {
	open := map[codes.Code]bool{
		codes.Canceled: true, codes.DeadlineExceeded: true, codes.Unavailable: true, codes.Aborted: true,
		codes.Internal: true, codes.Unknown: true,
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		for _, topology := range []bool{true, false} {
			for _, selected := range []bool{true, false} {
				for _, isGone := range []bool{true, false} {
					var edits []func(*ClaimInput)
					if topology {
						edits = append(edits, withTopology)
					}
					if selected {
						edits = append(edits, node("n1"))
					}
					in := plain(edits...)
					answer := Answer{Attempt: created(t, in), Err: failure(code), Claim: in.Claim}
					if isGone {
						answer.Claim = nil
					}
					want := "TryLater: " + said(code)
					switch {
					case open[code] && isGone && (code == codes.Internal || code == codes.Unknown):
						want = "KeepTrying: 1s: " + said(code)
					case open[code]:
						want = "KeepTrying: 0s: " + said(code)
					case code == codes.InvalidArgument:
						want = "Infeasible: " + said(code)
					case code == codes.ResourceExhausted && topology && selected && !isGone:
						want = "Reschedule: " + said(code)
					}
					if got := show(AfterCreate(answer)); got != want {
						t.Errorf("T59 %v topology %v selected %v gone %v: got %s, want %s", code, topology, selected, isGone, got, want)
					}
				}
			}
		}
	}
	if got := show(AfterCreate(Answer{Attempt: created(t, plain()), Err: errors.New("broken pipe")})); got != "KeepTrying: 0s: broken pipe" {
		t.Errorf("an error that is no answer leaves the outcome open, got %s", got)
	}
}

func TestAfterCreate(t *testing.T) {
	in := plain(withTopology, node("n1"))
	attempt := created(t, in)
	open := attempt.asOpen()
	prompted := func(times int) *Attempt {
		next := attempt
		for range times {
			next = next.asPrompted(now)
		}
		return next
	}
	vague := func(since time.Duration) *Attempt {
		next := *prompted(3)
		next.Vague = now.Add(-since)
		return &next
	}
	bare := attempt.asOpen()
	bare.Bare = true
	moved := in.Claim.DeepCopy()
	node("n2")(&ClaimInput{Claim: moved})
	terminating := in.Claim.DeepCopy()
	terminating.DeletionTimestamp = gone
	released := in.Claim.DeepCopy()
	released.Annotations = nil
	for _, c := range []struct {
		name   string
		answer Answer
		want   string
	}{
		{"T60 no room on the node", Answer{Attempt: attempt, Err: failure(codes.ResourceExhausted), Claim: in.Claim}, "Reschedule: " + said(codes.ResourceExhausted)},
		{"T62 the scheduler has chosen anew", Answer{Attempt: attempt, Err: failure(codes.ResourceExhausted), Claim: moved}, "TryLater: " + said(codes.ResourceExhausted)},
		{"the annotation is gone already", Answer{Attempt: attempt, Err: failure(codes.ResourceExhausted), Claim: released}, "TryLater: " + said(codes.ResourceExhausted)},
		{"B043 no room and terminating", Answer{Attempt: attempt, Err: failure(codes.ResourceExhausted), Claim: terminating}, "TryLater: " + said(codes.ResourceExhausted)},
		{"no room now proves nothing about an earlier call", Answer{Attempt: open, Err: failure(codes.ResourceExhausted), Claim: in.Claim}, "KeepTrying: 0s: " + said(codes.ResourceExhausted)},
		{"nor does a missing right", Answer{Attempt: open, Err: failure(codes.PermissionDenied), Claim: in.Claim}, "KeepTrying: 0s: " + said(codes.PermissionDenied)},
		{"a refusal of the arguments does", Answer{Attempt: open, Err: failure(codes.InvalidArgument), Claim: in.Claim}, "Infeasible: " + said(codes.InvalidArgument)},
		{"and so does a plain final answer", Answer{Attempt: open, Err: failure(codes.OutOfRange), Claim: in.Claim}, "TryLater: " + said(codes.OutOfRange)},
		{"a source that is gone may be found out before the name is looked up", Answer{Attempt: open, Err: failure(codes.NotFound), Claim: in.Claim}, "KeepTrying: 0s: " + said(codes.NotFound)},
		{"or one that is not fit", Answer{Attempt: open, Err: failure(codes.FailedPrecondition), Claim: in.Claim}, "KeepTrying: 0s: " + said(codes.FailedPrecondition)},
		{"gone: a source that is gone says as little as an error", Answer{Attempt: prompted(1), Now: now, Err: failure(codes.NotFound)}, "KeepTrying: 2s: " + said(codes.NotFound)},
		{"gone: nor does a full node", Answer{Attempt: prompted(2), Now: now, Err: failure(codes.ResourceExhausted)}, "KeepTrying: 4s: " + said(codes.ResourceExhausted)},
		{"gone, and asked without the secret", Answer{Attempt: bare, Now: now, Err: failure(codes.InvalidArgument)}, "KeepTrying: 1s: " + said(codes.InvalidArgument)},
		{"T11 gone and unknown whether it runs: for ever", Answer{Attempt: prompted(3), Err: failure(codes.DeadlineExceeded)}, "KeepTrying: 0s: " + said(codes.DeadlineExceeded)},
		{"T12 gone: first prompt repeat", Answer{Attempt: open, Err: failure(codes.Internal)}, "KeepTrying: 1s: " + said(codes.Internal)},
		{"T12 gone: second prompt repeat", Answer{Attempt: prompted(1), Err: failure(codes.Internal), Claim: terminating}, "KeepTrying: 2s: " + said(codes.Internal)},
		{"T12 gone: third prompt repeat", Answer{Attempt: prompted(2), Err: failure(codes.Unknown)}, "KeepTrying: 4s: " + said(codes.Unknown)},
		{"gone: then the usual delay", Answer{Attempt: prompted(3), Now: now, Err: failure(codes.Internal)}, "KeepTrying: 0s: " + said(codes.Internal)},
		{"gone: for an hour", Answer{Attempt: vague(time.Hour - time.Second), Now: now, Err: failure(codes.Internal)}, "KeepTrying: 0s: " + said(codes.Internal)},
		{"T12 gone: the end", Answer{Attempt: vague(time.Hour), Now: now, Err: failure(codes.Internal)}, "LetGo: pvc-" + uid + ": " + said(codes.Internal)},
		{"T12 there: the usual delay", Answer{Attempt: prompted(3), Err: failure(codes.Internal), Claim: in.Claim}, "KeepTrying: 0s: " + said(codes.Internal)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := AfterCreate(c.answer)
			if show(got) != c.want {
				t.Errorf("got\n%s, want\n%s", show(got), c.want)
			}
			if kept, ok := got.(KeepTrying); ok && (!kept.Attempt.Open || kept.Attempt.Request != attempt.Request) {
				t.Error("the attempt must stay open with the very same request")
			}
		})
	}
	if attempt.Open || open.Prompt != 0 {
		t.Error("an attempt was changed in place")
	}
}

// TestPatience: what follows each other while the driver says nothing about the volume of a claim that is gone. An outage behind
// the driver must not make it forget the volume after seconds. Catches patience that is counted in answers alone.
func TestPatience(t *testing.T) {
	attempt, at := created(t, plain()), now
	var waited, told []time.Duration
	for range 100 {
		outcome := AfterCreate(Answer{Attempt: attempt, Now: at, Err: failure(codes.Internal)})
		kept, ok := outcome.(KeepTrying)
		if !ok {
			if _, ok := outcome.(LetGo); !ok {
				t.Fatalf("ends with %s", show(outcome))
			}
			break
		}
		attempt = kept.Attempt
		if kept.Tell {
			told = append(told, at.Sub(now))
		}
		if kept.After == 0 {
			at = at.Add(5 * time.Minute)
			continue
		}
		if got := attempt.NotBefore.Sub(at); got != kept.After {
			t.Errorf("due in %v, asked for %v", got, kept.After)
		}
		waited, at = append(waited, kept.After), at.Add(kept.After)
	}
	if fmt.Sprint(waited) != "[1s 2s 4s]" || fmt.Sprint(told) != "[7s]" {
		t.Error(waited, told)
	}
	if took := at.Sub(now); took < time.Hour || took > time.Hour+6*time.Minute {
		t.Errorf("let go after %v", took)
	}
}

// TestNoRoomWhileOpen: an open outcome does not tie a claim to a full node for ever, and is not forgotten either.
func TestNoRoomWhileOpen(t *testing.T) {
	in := plain(withTopology, node("n1"))
	open := created(t, in).asOpen()
	full := Answer{Attempt: open, Err: failure(codes.ResourceExhausted), Claim: in.Claim}
	once := AfterCreate(full).(KeepTrying).Attempt
	if once.Parked || once.asOpen().Full != 0 {
		t.Error("one answer, or two with another between them, are not enough")
	}
	full.Attempt = once
	twice, ok := AfterCreate(full).(Reschedule)
	if !ok || !twice.Left.Parked || !twice.Left.Open || twice.Left.Request != open.Request {
		t.Fatalf("got %s", show(AfterCreate(full)))
	}
	moved := in.Claim.DeepCopy()
	node("n2")(&ClaimInput{Claim: moved})
	full.Claim = moved
	if later, ok := AfterCreate(full).(TryLater); !ok || later.Left == nil {
		t.Errorf("the scheduler has chosen anew: got %s", show(AfterCreate(full)))
	}
	full.Claim = nil
	if got := show(AfterCreate(full)); got != "KeepTrying: 1s: "+said(codes.ResourceExhausted) {
		t.Errorf("gone: got %s", got)
	}

	waiting := plain(withTopology, node("n2"), func(in *ClaimInput) { in.Attempt = twice.Left })
	next := created(t, waiting)
	if next.Prior != twice.Left || next.Node != "n2" || next.Open || next.Name() != open.Name() {
		t.Errorf("the next request is %+v", next)
	}
	for code, want := range map[codes.Code]string{
		codes.ResourceExhausted: "Reschedule", codes.InvalidArgument: "Infeasible", codes.OutOfRange: "TryLater",
	} {
		outcome := AfterCreate(Answer{Attempt: next, Err: failure(code), Claim: waiting.Claim})
		left := map[string]*Attempt{}
		switch o := outcome.(type) {
		case Reschedule:
			left["Reschedule"] = o.Left
		case Infeasible:
			left["Infeasible"] = o.Left
		case TryLater:
			left["TryLater"] = o.Left
		}
		if left[want] != twice.Left {
			t.Errorf("%v: got %s, and what may have been made before is forgotten", code, show(outcome))
		}
	}
	for name, c := range map[string]struct {
		edit func(*ClaimInput)
		want string
	}{
		"no node yet":   {func(in *ClaimInput) { wait(in); in.Claim.Annotations = plain().Claim.Annotations }, "Wait: 0s"},
		"gone":          {func(in *ClaimInput) { in.Claim = nil }, "Resume: pvc-" + uid},
		"terminating":   {func(in *ClaimInput) { in.Claim.DeletionTimestamp = gone }, "Resume: pvc-" + uid},
		"bound by hand": {func(in *ClaimInput) { in.Claim.Spec.VolumeName = "v" }, "Resume: pvc-" + uid},
	} {
		if got := show(NextClaimStep(plain(withTopology, node("n1"), func(in *ClaimInput) { in.Attempt = twice.Left }, c.edit))); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestPriorsStayFew: a claim that goes round in a full cluster, with an answer lost each time, remembers each request once. Catches
// a chain that grows with each round, until it fits on no record and no later process reads it.
func TestPriorsStayFew(t *testing.T) {
	var left *Attempt
	for round := range 20 {
		for _, name := range []string{"n1", "n2"} {
			attempt := created(t, plain(withTopology, node(name), func(in *ClaimInput) { in.Attempt = left })).asOpen()
			attempt.Full = 1
			outcome, ok := AfterCreate(Answer{Attempt: attempt, Err: failure(codes.ResourceExhausted), Claim: plain(node(name)).Claim}).(Reschedule)
			if !ok {
				t.Fatal("not given back")
			}
			left = outcome.Left
		}
		places := map[string]int{}
		for a := left; a != nil; a = a.Prior {
			places[a.Node]++
		}
		if want := map[string]int{"n1": 1, "n2": 1}; !maps.Equal(places, want) {
			t.Fatalf("after round %d there are %v", round, places)
		}
	}
}

// wait makes the class one that waits for the first consumer.
func wait(in *ClaimInput) {
	class := in.Class.DeepCopy()
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	class.VolumeBindingMode = &mode
	in.Class = class
}

// TestNoSecretAnyMore: an attempt whose secret went with its claim.
func TestNoSecretAnyMore(t *testing.T) {
	attempt, missing := created(t, plain()).asOpen(), errors.New("secret not found")
	ask := func(at time.Duration) Outcome {
		return AfterNoSecret(Answer{Attempt: attempt, Now: now.Add(at), Err: missing})
	}
	first := ask(0).(KeepTrying)
	if !first.Tell {
		t.Error("not told")
	}
	attempt = first.Attempt
	if again, ok := ask(SecretPatience - time.Second).(KeepTrying); !ok || again.Tell || again.Attempt.Bare {
		t.Error("too early or told twice")
	}
	attempt = ask(SecretPatience).(GoWithout).Attempt
	if after := ask(SecretPatience + time.Second); show(after) != "KeepTrying: 1s: secret not found" {
		t.Errorf("one try without is enough: %s", show(after))
	}
	if back := attempt.Equipped(); back.Bare || !back.NoSecret.IsZero() || !back.Open {
		t.Error("the secret is back", back)
	}
}

func TestVolumesThatCameBack(t *testing.T) {
	in := plain()
	attempt := created(t, in)
	withSource := created(t, plain(restore()...))
	for _, c := range []struct {
		name    string
		attempt *Attempt
		volume  *csi.Volume
		want    string
	}{
		{"T53 exact", attempt, &csi.Volume{VolumeId: "h", CapacityBytes: 1 << 30}, "Provisioned: h"},
		{"T53 larger", attempt, &csi.Volume{VolumeId: "h", CapacityBytes: 1<<30 + 1}, "Provisioned: h"},
		{"T53 size not said", attempt, &csi.Volume{VolumeId: "h"}, "Provisioned: h"},
		{"T53 smaller", attempt, &csi.Volume{VolumeId: "h", CapacityBytes: 1<<30 - 1}, "Undo: h: created volume capacity 1073741823 less than requested capacity 1073741824"},
		{"T42 without the source", withSource, &csi.Volume{VolumeId: "h"}, "Undo: h: volume content source missing"},
		{"T42 with a source", withSource, &csi.Volume{VolumeId: "h", ContentSource: &csi.VolumeContentSource{}}, "Provisioned: h"},
		{"W8 no id", attempt, &csi.Volume{}, "KeepTrying: 0s: the driver answered with a volume without id"},
		{"W8 nothing", attempt, nil, "KeepTrying: 0s: the driver answered with a volume without id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := show(AfterCreate(Answer{Attempt: c.attempt, Volume: c.volume, Claim: in.Claim})); got != c.want {
				t.Errorf("got\n%s, want\n%s", got, c.want)
			}
		})
	}
}

func TestOrphanedTexts(t *testing.T) {
	small := AfterCreate(Answer{Attempt: created(t, plain()), Volume: &csi.Volume{VolumeId: "h", CapacityBytes: 1}}).(Undo)
	if got, want := small.Orphaned(errors.New("no")).Error(), "created volume capacity 1 less than requested capacity 1073741824. Cleanup of volume pvc-"+uid+" failed, volume is orphaned: no"; got != want {
		t.Errorf("T54: got\n%s, want\n%s", got, want)
	}
	empty := AfterCreate(Answer{Attempt: created(t, plain(restore()...)), Volume: &csi.Volume{VolumeId: "h"}}).(Undo)
	if got, want := empty.Orphaned(errors.New("no")).Error(), "volume content source missing. cleanup of volume pvc-"+uid+" failed, volume is orphaned: no"; got != want {
		t.Errorf("T54: got\n%s, want\n%s", got, want)
	}
}
