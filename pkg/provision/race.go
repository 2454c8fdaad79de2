// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/csi-tandem/csi-tandem/pkg/params"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Race is what a process for one node remembers of a claim that nobody has selected a node for.
type Race struct {
	// Began is since when this node could take the claim.
	Began time.Time
	// Tries is how often it took the claim, or tried to, and does not have it.
	Tries int
	// Stood is how often it stood back.
	Stood int
}

// RoomState is what was asked before a node takes a claim.
type RoomState struct {
	// Answer is the driver's, nil when it was not asked or gave none.
	Answer *csi.GetCapacityResponse
	Err    error
	// Taken is what the claims ask for that this node has taken and that have no volume yet.
	Taken int64
	// Nodes is how many may take part, 0 when that is not known.
	Nodes int
}

// IsRaced tells that any node may take the claim.
func IsRaced(in ClaimInput) bool {
	return in.isLocal() && (in.Attempt == nil || in.Attempt.isBeside()) && skip(in) == "" && in.Claim.Annotations[wellknown.AnnSelectedNode] == ""
}

// isBeside tells an attempt beside which a new request may be made.
func (a *Attempt) isBeside() bool { return a.Undoing == nil && a.Parked && a.Made == nil }

// nextRace decides about a claim that any node may take. Nothing is written and nobody is told anything before
// the node has taken the claim: what is done here is done on every node.
func nextRace(in ClaimInput) ClaimStep {
	if !in.Racing.Immediate {
		return Ignore{"no node is selected, and the flags leave such claims alone"}
	}
	here := in
	here.Claim = in.Claim.DeepCopy()
	here.Claim.Annotations[wellknown.AnnSelectedNode] = in.Node
	here, source, wrong := opening(here)
	if source != nil && !source.isKnown() {
		return Ignore{"the source is of a kind that another component handles"}
	}
	request, err := roomRequest(here, wrong)
	if err != nil {
		return standOutside(in, err)
	}
	if in.Room == nil {
		return AskRoom{request}
	}
	if step := standBack(in, request); step != nil {
		return step
	}
	if left := in.Race.Began.Add(in.raceDelay()).Sub(in.Now); left > 0 {
		return Wait{Why: "nodes with more room may take the claim first", After: left}
	}
	if source == nil || wrong != nil {
		return BecomeOwner{in.Node}
	}
	return raceForSource(here, source)
}

// roomRequest asks for the room that a volume of the claim would have here, nil when the driver cannot tell or
// when the claim is wrong anyhow: then the node that takes it tells so. The error means that the class does
// not allow this node.
func roomRequest(in ClaimInput, wrong error) (*csi.GetCapacityRequest, error) {
	if wrong != nil {
		return nil, nil
	}
	if _, err := requirement(in); err != nil && len(in.Class.AllowedTopologies) > 0 {
		return nil, err
	}
	if !in.Capabilities.Has(csi.ControllerServiceCapability_RPC_GET_CAPACITY) || wantedSize(in) == 0 {
		return nil, nil
	}
	basics, err := basicsOf(in)
	if err != nil {
		return nil, nil
	}
	parameters, err := params.DriverParameters(in.Class.Parameters, params.VolumeKeys())
	if err != nil {
		return nil, nil
	}
	request := &csi.GetCapacityRequest{VolumeCapabilities: basics.capabilities, Parameters: parameters}
	if in.hasTopology() && len(in.Segment) > 0 {
		request.AccessibleTopology = &csi.Topology{Segments: in.Segment.Labels()}
	}
	return request, nil
}

// standBack is the step of a node without room. Others may have some, so that it says so only when the claim
// has not found one for a while.
func standBack(in ClaimInput, request *csi.GetCapacityRequest) ClaimStep {
	if request == nil || in.Room.Answer == nil {
		return nil
	}
	size, free := wantedSize(in), in.Room.free()
	largest := in.Room.Answer.GetMaximumVolumeSize()
	switch {
	case largest != nil && largest.GetValue() < size:
		free = largest.GetValue()
	case size <= free:
		return nil
	}
	err := advise(fmt.Errorf("node %q has no room for the %s that are asked for: it has %s", in.Node, quantity(size), quantity(max(free, 0))),
		"the claim is taken as soon as a node that its class allows has the room: add some, or delete what is not needed there")
	return StandBack{Why: err.Error(), After: in.Racing.Max, Err: err, Tell: in.Race.Stood > 0 && in.isSpeaker()}
}

// standOutside is the step of a node that the class does not allow. Where it allows none that is there, nobody else says so: a node
// knows of no other, but sees that nobody has taken the claim. What it tells is the same on all nodes.
func standOutside(in ClaimInput, err error) ClaimStep {
	why := "this node cannot have the volume: " + err.Error()
	slip, outside := topology.Outside(err)
	switch {
	case !outside:
		return Ignore{why}
	case in.Race.Stood > 0 && in.Room == nil:
		return AskRoom{}
	}
	told := advise(fmt.Errorf("no node that allowedTopologies of StorageClass %q allow has taken the claim so far", in.Class.Name), "%s",
		cmp.Or(slip, "see that the driver runs on a node of these places and has the room there, or correct allowedTopologies, which can be edited in place; the claim goes on by itself"))
	return StandBack{Why: why, After: in.Racing.Max, Err: told, Tell: in.Race.Stood > 0 && in.isSpeaker(), Shared: true}
}

// raceForSource looks where the data is that the volume is to have. It is read when the node would take the
// claim, and not before: most nodes never come so far.
func raceForSource(in ClaimInput, source *Source) ClaimStep {
	if in.Source == nil {
		return ReadSource{*source}
	}
	if _, err := CheckSource(in, source); isPending(err) {
		return StandBack{Why: err.Error(), After: in.Racing.Max, Err: err, Tell: in.isSpeaker()}
	}
	if why := away(in, in.Node); why != "" {
		return StandBack{Why: why, After: in.Racing.Max, Err: errors.New(why)}
	}
	return BecomeOwner{in.Node}
}

// speakers is about how many nodes tell of a claim that none of them can take.
const speakers = 8

// isSpeaker chooses those nodes. Where there are few each of them tells, so that it is told for certain.
func (in ClaimInput) isSpeaker() bool {
	return in.Room.Nodes <= speakers || chance(in.Claim, in.Node+"/speaker") < speakers/float64(in.Room.Nodes)
}

// free may be less than nothing. Neither number is, so that the difference is one.
func (r *RoomState) free() int64 { return max(r.Answer.GetAvailableCapacity(), 0) - max(r.Taken, 0) }

const (
	// perNode is how far apart the nodes should come, which is about as long as a watch takes to tell the
	// others; narrowest is the part of the base delay that is always used, so that the order can be seen.
	perNode   = 20 * time.Millisecond
	narrowest = 20
)

// raceDelay is how long the node waits before it takes the claim: the shorter the more room it would have
// left, and each node another time. The width grows with the number of nodes, and with each try that failed.
func (in ClaimInput) raceDelay() time.Duration {
	base := in.Racing.Base
	width := base
	if in.Room.Nodes > 0 {
		width = min(max(time.Duration(in.Room.Nodes)*perNode, base/narrowest), base)
	}
	for range in.Race.Tries {
		if width >= in.Racing.Max {
			break
		}
		width += min(width, in.Racing.Max-width)
	}
	width = min(width, in.Racing.Max)
	share := chance(in.Claim, in.Node)
	switch size := wantedSize(in); {
	case in.Room.Err != nil:
		share = (3 + share) / 4 // those who know come first
	case in.Room.Answer != nil && size > 0:
		by := in.Room.byChance()
		share = (1-by)*fit(size, in.Room.free()) + by*share
	}
	return time.Duration(share * float64(width))
}

// byChance is how much of the delay is chance, where it is known how much room there is: enough to keep apart the
// nodes that have as much, and no more.
func (r *RoomState) byChance() float64 {
	if r.Nodes == 0 {
		return 0.25
	}
	return min(max(float64(r.Nodes)/200, 0.05), 0.25)
}

// fit is 1 for a node that would be full, and less with every doubling of its room.
func fit(size, free int64) float64 {
	return 1 / (1 + math.Log2(max(float64(free)/float64(size), 1)))
}

// chance is a number from 0 up to 1 that is the same at every look, and another one for each claim and node.
func chance(claim *corev1.PersistentVolumeClaim, node string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(node + "/" + string(claim.UID))) // never fails
	// FNV mixes its last bytes badly into the high bits.
	mixed := h.Sum64()
	mixed ^= mixed >> 33
	mixed *= 0xff51afd7ed558ccd
	mixed ^= mixed >> 33
	return float64(mixed>>11) / (1 << 53)
}

func quantity(bytes int64) *resource.Quantity { return resource.NewQuantity(bytes, resource.BinarySI) }
