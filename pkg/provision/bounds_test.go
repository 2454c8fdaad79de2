// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// TestWhatDriversSayHasABound: a volume that no object could describe is removed and told, instead of being saved in vain for
// ever. Catches a builder that takes whatever it is given.
func TestWhatDriversSayHasABound(t *testing.T) {
	attempt := created(t, plain())
	text := func(n int) string { return strings.Repeat("x", n) }
	const besideKey, besideSegment = len("a") + len(`"f:":{},`), 32
	place := func(n int) []*csi.Topology {
		return []*csi.Topology{{Segments: map[string]string{"zone": text(n - len("zone") - besideSegment)}}}
	}
	context := func(n int) map[string]string { return map[string]string{"a": text(n - len("a") - besideKey)} }
	keys := map[string]string{}
	for i := range 60_000 {
		keys[fmt.Sprintf("%06d", i)] = ""
	}
	for _, c := range []struct {
		name string
		made *csi.Volume
		want string
	}{
		{"what is usual", &csi.Volume{VolumeId: text(128), VolumeContext: map[string]string{"a": text(4 << 10)}}, ""},
		{"a long id", &csi.Volume{VolumeId: text(16 << 10)}, ""},
		{"a longer one", &csi.Volume{VolumeId: text(16<<10 + 1)}, "a volume_id of 16385 bytes"},
		{"as much as fits", &csi.Volume{VolumeId: "v", VolumeContext: context(1 << 20)}, ""},
		{"a large context", &csi.Volume{VolumeId: "v", VolumeContext: context(1<<20 + 1)}, "a volume_context and topology of 1048577 bytes"},
		{"a large topology", &csi.Volume{VolumeId: "v", AccessibleTopology: place(1<<20 + 1)}, "a volume_context and topology of 1048577 bytes"},
		{"both together", &csi.Volume{VolumeId: "v", VolumeContext: context(1 << 19), AccessibleTopology: place(1<<19 + 1)}, "of 1048577 bytes"},
		{"many keys, which are stored twice", &csi.Volume{VolumeId: "v", VolumeContext: keys}, "of 1200000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			switch outcome := AfterCreate(Answer{Attempt: attempt, Now: now, Volume: c.made}).(type) {
			case Provisioned:
				if c.want != "" {
					t.Error("it counts as provisioned")
				}
			case Undo:
				if c.want == "" || !strings.Contains(outcome.Err.Error(), c.want) || outcome.Handle != c.made.GetVolumeId() {
					t.Errorf("undone: %v", outcome.Err)
				}
				if !strings.Contains(fault.Sentence(outcome.Err), "Kubernetes does not store") {
					t.Errorf("no advice: %s", fault.Sentence(outcome.Err))
				}
			default:
				t.Errorf("got %T", outcome)
			}
		})
	}
}

// TestATooLargeAnswerIsNoFullPool: the volume may have been made, so the claim stays with its node and its request. Catches a
// machine that gives the claim back to the scheduler, and with it forgets the volume.
func TestATooLargeAnswerIsNoFullPool(t *testing.T) {
	in := plain(withTopology, node("n1"))
	attempt := created(t, in)
	answer := func(text string) Outcome {
		err := fault.New(fault.CreateVolume, status.Error(codes.ResourceExhausted, text))
		return AfterCreate(Answer{Attempt: attempt, Now: now, Err: err, Claim: in.Claim})
	}
	if outcome, ok := answer("grpc: received message larger than max (5242896 vs. 4194304)").(KeepTrying); !ok || !outcome.Attempt.Open {
		t.Errorf("too large: got %#v", outcome)
	}
	if outcome, ok := answer("no room").(Reschedule); !ok {
		t.Errorf("no room: got %#v", outcome)
	}
}
