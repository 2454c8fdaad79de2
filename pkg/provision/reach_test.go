// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"testing"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// madeIn is where the volume is that the snapshot was taken of.
func madeIn(zone string) func(*ClaimInput) {
	return func(in *ClaimInput) {
		in.Source.Volume = &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{
			Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
			}}},
		}}}
	}
}

// compare is what helps where the driver speaks of parameters or sizes: it does not know which class it has them from.
const compare = "; compare the words of the driver with the parameters of StorageClass sc, and with what is asked for"

// TestAwayFromTheData (B089): a node that the data of a snapshot cannot be reached from is given back to the scheduler, and the
// reason is told. Catches one that waits for minutes with the wrong node, since the driver called the request infeasible.
func TestAwayFromTheData(t *testing.T) {
	const why = `; the data of the source is in {zone: a} only, and the selected node "n2" is not; let the pod run there, for instance by a node selector`
	const again = "; it is asked again within --retry-interval-max (5m if not set), or at once with kubectl annotate pvc -n ns1 data --overwrite csi-tandem.io/retry=$(date +%s)"
	topologyAnd := func(more ...func(*ClaimInput)) []func(*ClaimInput) {
		return restore(append([]func(*ClaimInput){func(in *ClaimInput) {
			withTopology(in)
			in.Capabilities = everyCapability()
		}}, more...)...)
	}
	for _, row := range []struct {
		name  string
		edits []func(*ClaimInput)
		code  codes.Code
		want  string
	}{
		{"B089 infeasible there", topologyAnd(node("n2"), madeIn("a")), codes.InvalidArgument, "Reschedule: rpc error: code = InvalidArgument desc = x" + why},
		{"B089 no room there", topologyAnd(node("n2"), madeIn("a")), codes.ResourceExhausted, "Reschedule: rpc error: code = ResourceExhausted desc = x" + why},
		{"infeasible where the data is", topologyAnd(node("n1"), madeIn("a")), codes.InvalidArgument, "Infeasible: rpc error: code = InvalidArgument desc = x" + compare + again},
		{"infeasible, and nobody knows where the data is", topologyAnd(node("n2")), codes.InvalidArgument, "Infeasible: rpc error: code = InvalidArgument desc = x" + compare + again},
		{"another error is not about places", topologyAnd(node("n2"), madeIn("a")), codes.FailedPrecondition, "TryLater: rpc error: code = FailedPrecondition desc = x" + why},
		{"no node was selected", topologyAnd(madeIn("a")), codes.InvalidArgument, "Infeasible: rpc error: code = InvalidArgument desc = x" + compare + again},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := plain(row.edits...)
			outcome := AfterCreate(Answer{Attempt: created(t, in), Now: now, Err: failure(row.code), Claim: in.Claim})
			if got := told(outcome); got != row.want {
				t.Errorf("got\n%s, want\n%s", got, row.want)
			}
		})
	}
}

// told is an outcome with what users are told of its error.
func told(o Outcome) string {
	switch s := o.(type) {
	case Reschedule:
		return "Reschedule: " + fault.Sentence(s.Err)
	case Infeasible:
		return "Infeasible: " + fault.Sentence(s.Err)
	case TryLater:
		return "TryLater: " + fault.Sentence(s.Err)
	}
	return show(o)
}

// TestClonesOfLargerVolumes (W29): the size of the source is that of its volume and not what its claim once asked for. Drivers may
// be able to make the smaller copy, so that they are asked; where one is not, the user hears of the real size. Catches one
// that looks at requests alone.
func TestClonesOfLargerVolumes(t *testing.T) {
	grown := func(size string) func(*ClaimInput) {
		return func(in *ClaimInput) {
			in.Source.Volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		}
	}
	for size, want := range map[string]string{
		"2Gi": "TryLater: rpc error: code = OutOfRange desc = x; the source volume src-pv has 2Gi, more than the 1Gi that are asked for: ask for at least that much",
		"1Gi": "TryLater: rpc error: code = OutOfRange desc = x" + compare,
	} {
		in := plain(clone(grown(size))...)
		attempt := created(t, in)
		if got := attempt.Request.GetCapacityRange().GetRequiredBytes(); got != 1<<30 {
			t.Errorf("%s: %d bytes were asked for", size, got)
		}
		if got := told(AfterCreate(Answer{Attempt: attempt, Now: now, Err: failure(codes.OutOfRange), Claim: in.Claim})); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
	}
}
