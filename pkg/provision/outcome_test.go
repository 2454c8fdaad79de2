// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

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
		{"and so does a plain final answer", Answer{Attempt: open, Err: failure(codes.NotFound), Claim: in.Claim}, "TryLater: " + said(codes.NotFound)},
		{"T11 gone and unknown whether it runs: for ever", Answer{Attempt: prompted(3), Err: failure(codes.DeadlineExceeded)}, "KeepTrying: 0s: " + said(codes.DeadlineExceeded)},
		{"T12 gone: first prompt repeat", Answer{Attempt: open, Err: failure(codes.Internal)}, "KeepTrying: 1s: " + said(codes.Internal)},
		{"T12 gone: second prompt repeat", Answer{Attempt: prompted(1), Err: failure(codes.Internal), Claim: terminating}, "KeepTrying: 2s: " + said(codes.Internal)},
		{"T12 gone: third prompt repeat", Answer{Attempt: prompted(2), Err: failure(codes.Unknown)}, "KeepTrying: 4s: " + said(codes.Unknown)},
		{"T12 gone: the end", Answer{Attempt: prompted(3), Err: failure(codes.Internal)}, "LetGo: pvc-" + uid + ": " + said(codes.Internal)},
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

func TestPromptRepeatsAreCounted(t *testing.T) {
	attempt := created(t, plain())
	var waited []time.Duration
	for {
		outcome := AfterCreate(Answer{Attempt: attempt, Now: now, Err: failure(codes.Internal)})
		kept, ok := outcome.(KeepTrying)
		if !ok {
			if _, ok := outcome.(LetGo); !ok {
				t.Fatalf("ends with %s", show(outcome))
			}
			break
		}
		attempt = kept.Attempt
		if got := attempt.NotBefore.Sub(now); got != kept.After {
			t.Errorf("due in %v, asked for %v", got, kept.After)
		}
		waited = append(waited, kept.After)
	}
	if fmt.Sprint(waited) != "[1s 2s 4s]" {
		t.Error(waited)
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
