// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/wrapperspb"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

const gib = 1 << 30

// onNode makes the process serve node n1, with a driver of topology that can say how much room it has.
func onNode(in *ClaimInput) {
	in.Capabilities = capability.Of([]capability.Plugin{
		csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	}, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, csi.ControllerServiceCapability_RPC_CLONE_VOLUME)
	in.Local = Local{Node: "n1", Segment: topology.SegmentOf(map[string]string{"host": "n1"})}
	in.Topology.SetNode("n1", map[string]string{"host": "n1"})
	in.Topology.SetDriverKeys("n1", []string{"host"})
	in.Racing = Racing{Immediate: true, Base: 20 * time.Second, Max: time.Minute}
	in.Race = Race{Began: now}
}

func room(free int64, edits ...func(*RoomState)) func(*ClaimInput) {
	return func(in *ClaimInput) {
		in.Room = &RoomState{Answer: &csi.GetCapacityResponse{AvailableCapacity: free}, Nodes: 3}
		for _, edit := range edits {
			edit(in.Room)
		}
	}
}

func waited(d time.Duration) func(*ClaimInput) {
	return func(in *ClaimInput) { in.Now = now.Add(d) }
}

func stood(in *ClaimInput) { in.Race.Stood = 1 }

func allowedHosts(hosts ...string) func(*ClaimInput) {
	return func(in *ClaimInput) {
		in.Class.AllowedTopologies = []corev1.TopologySelectorTerm{{
			MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "host", Values: hosts}},
		}}
	}
}

func delayed(in *ClaimInput) {
	in.Class.VolumeBindingMode = of(storagev1.VolumeBindingWaitForFirstConsumer)
}

func showRace(step ClaimStep) string {
	switch s := step.(type) {
	case AskRoom:
		if s.Request == nil {
			return "AskRoom: only how many nodes there are"
		}
		return fmt.Sprintf("AskRoom: %v of %v", s.Request.GetAccessibleTopology().GetSegments(), s.Request.GetParameters())
	case BecomeOwner:
		return "BecomeOwner: " + s.Node
	case StandBack:
		return fmt.Sprintf("StandBack: %s, told %t, after %v", s.Why, s.Tell, s.After)
	case Discard:
		return "Discard: " + s.Attempt.Name()
	case Wait:
		return "Wait"
	}
	return show(step)
}

func TestWhoseClaim(t *testing.T) {
	const full = `StandBack: node "n1" has no room for the 1Gi that are asked for: it has 512Mi, told `
	alpha := annotate(wellknown.AnnAlphaSelectedNode, "n1")
	for _, c := range []struct {
		name  string
		edits []func(*ClaimInput)
		want  string
	}{
		{"T97 own node", []func(*ClaimInput){node("n1")}, "Create: pvc-" + uid},
		{"T97 other node", []func(*ClaimInput){node("n2")}, `Ignore: the claim is for node "n2", whose provisioner makes the volume`},
		{"T97 none with late binding", []func(*ClaimInput){delayed}, "Ignore: the claim waits for its first consumer"},
		{"T97 own node with late binding", []func(*ClaimInput){delayed, node("n1")}, "Create: pvc-" + uid},
		{"T97 none with the flag off", []func(*ClaimInput){func(in *ClaimInput) { in.Racing.Immediate = false }}, "Ignore: no node is selected, and the flags leave such claims alone"},
		// A process that takes the alpha key for a choice would never race, and none would have the claim.
		{"the alpha key selects no node", []func(*ClaimInput){alpha, room(gib), waited(time.Minute)}, "BecomeOwner: n1"},
		// W-10: an instance that reads spec.storageClassName alone ends with a nil pointer here.
		{"W-10 the class by the beta annotation", []func(*ClaimInput){annotate(wellknown.AnnBetaStorageClass, "sc"), func(in *ClaimInput) { in.Claim.Spec.StorageClassName = nil }},
			"AskRoom: map[host:n1] of map[]"},
		// W-6, W-12: a reserved parameter in this call, or any step before it, would be seen by every node's driver.
		{"W-12 capacity is asked first, and without reserved parameters", []func(*ClaimInput){parameters("csi.storage.k8s.io/provisioner-secret-name", "s", "csi.storage.k8s.io/provisioner-secret-namespace", "ns", "tier", "fast")},
			"AskRoom: map[host:n1] of map[tier:fast]"},
		{"a driver that cannot say", []func(*ClaimInput){func(in *ClaimInput) {
			in.Capabilities = capability.Of([]capability.Plugin{csi.PluginCapability_Service_CONTROLLER_SERVICE}, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME)
		}}, "AskRoom: only how many nodes there are"},
		{"enough room, and not yet", []func(*ClaimInput){room(gib)}, "Wait"},
		{"T98 enough room", []func(*ClaimInput){room(gib), waited(time.Minute)}, "BecomeOwner: n1"},
		// An instance that believes the number alone takes ten claims for the room of one.
		{"T98 room that is promised already", []func(*ClaimInput){room(3*gib/2, func(r *RoomState) { r.Taken = gib }), waited(time.Minute)}, full + "false, after 1m0s"},
		{"T98 not enough", []func(*ClaimInput){room(gib / 2), waited(time.Minute)}, full + "false, after 1m0s"},
		{"B041 not enough for long", []func(*ClaimInput){room(gib / 2), stood, allowedHosts("n1")}, full + "true, after 1m0s"},
		{"a volume too large for the driver", []func(*ClaimInput){room(9*gib, func(r *RoomState) { r.Answer.MaximumVolumeSize = wrapperspb.Int64(gib / 2) })}, full + "false, after 1m0s"},
		{"T99 allowedTopologies without the node", []func(*ClaimInput){allowedHosts("n2", "n3")},
			`StandBack: this node cannot have the volume: topology {host: n1} from selected node "n1" is not in requisite: [{host: n2} {host: n3}], told false, after 1m0s`},
		{"B041 allowedTopologies without the node, strictly", []func(*ClaimInput){allowedHosts("n2"), func(in *ClaimInput) { in.Places.Strict = true }},
			`StandBack: this node cannot have the volume: selected node '"n1"' topology '{host: n1}' is not in allowed topologies: [{host: n2}], told false, after 1m0s`},
		// A node that is outside for long may be one of thousands, and all of them would tell.
		{"B041 outside for long", []func(*ClaimInput){allowedHosts("n2"), stood}, "AskRoom: only how many nodes there are"},
		{"B041 outside for long, one of three", []func(*ClaimInput){allowedHosts("n2"), stood, room(gib)},
			`StandBack: this node cannot have the volume: topology {host: n1} from selected node "n1" is not in requisite: [{host: n2}], told true, after 1m0s`},
		{"B041 outside for long, one of many", []func(*ClaimInput){allowedHosts("n2"), stood, room(gib, func(r *RoomState) { r.Nodes = 1 << 40 })},
			`StandBack: this node cannot have the volume: topology {host: n1} from selected node "n1" is not in requisite: [{host: n2}], told false, after 1m0s`},
		{"B041 allowedTopologies with the node", []func(*ClaimInput){allowedHosts("n1"), room(gib), waited(time.Minute)}, "BecomeOwner: n1"},
		{"a claim that is wrong is taken, so that one node tells", []func(*ClaimInput){parameters("csi.storage.k8s.io/nonsense", "x"), room(gib), waited(time.Minute)}, "BecomeOwner: n1"},
		{"a driver that does not answer", []func(*ClaimInput){func(in *ClaimInput) { in.Room = &RoomState{Err: fmt.Errorf("down")} }, waited(time.Minute)}, "BecomeOwner: n1"},
		{"a populator's claim", []func(*ClaimInput){func(in *ClaimInput) {
			in.Claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: of("x.io"), Kind: "Book", Name: "b"}
		}}, "Ignore: the source is of a kind that another component handles"},
		{"a clone reads its source when its turn has come", []func(*ClaimInput){cloneOf("src"), room(gib)}, "Wait"},
		{"a clone reads its source", []func(*ClaimInput){cloneOf("src"), room(gib), waited(time.Minute)}, "ReadSource: {PersistentVolumeClaim ns1 src}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, showRace(NextClaimStep(plain(append([]func(*ClaimInput){onNode}, c.edits...)...)))); d != "" {
				t.Error(d)
			}
		})
	}
}

func cloneOf(name string) func(*ClaimInput) {
	return func(in *ClaimInput) {
		in.Claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: wellknown.KindPersistentVolumeClaim, Name: name}
	}
}

// TestRaceGoesToWhoHasRoom: by chance alone a nearly full node wins as often as an empty one.
func TestRaceGoesToWhoHasRoom(t *testing.T) {
	wins := 0
	const claims = 300
	for i := range claims {
		delay := func(name string, free int64) time.Duration {
			in := plain(onNode, room(free))
			in.Node, in.Claim.UID = name, types.UID(fmt.Sprint("uid-", i))
			return in.raceDelay()
		}
		if roomy := delay("n1", 64*gib); roomy < delay("n2", gib) && roomy < delay("n3", gib) {
			wins++
		}
	}
	if wins != claims {
		t.Errorf("the node with the most room came first for %d of %d claims", wins, claims)
	}
}

// TestRaceIsNoHerd: equal nodes that begin together and wait equally long all write at once, and all but one in
// vain.
func TestRaceIsNoHerd(t *testing.T) {
	const nodes, watch = 5000, 100 * time.Millisecond
	first, delays := time.Hour, []time.Duration{}
	for i := range nodes {
		in := plain(onNode, room(64*gib, func(r *RoomState) { r.Nodes = nodes }))
		in.Node = fmt.Sprint("node-", i)
		d := in.raceDelay()
		if again := in.raceDelay(); again != d {
			t.Fatalf("the delay is %v, and at the next look %v", d, again)
		}
		delays, first = append(delays, d), min(first, d)
	}
	vain := -1
	for _, d := range delays {
		if d < first+watch {
			vain++
		}
	}
	if vain > nodes/50 {
		t.Errorf("%d of %d nodes write before they can have heard of the first", vain, nodes)
	}
}

func TestRaceDelay(t *testing.T) {
	bound := func(in ClaimInput) time.Duration {
		longest := time.Duration(0)
		for i := range 500 {
			in.Node = fmt.Sprint(i)
			longest = max(longest, in.raceDelay())
		}
		return longest.Round(time.Second)
	}
	unknown := func(in *ClaimInput) { in.Room = &RoomState{} }
	for _, c := range []struct {
		name string
		edit func(*ClaimInput)
		want time.Duration
	}{
		{"as wide as the flag says where nothing is known", func(*ClaimInput) {}, 20 * time.Second},
		{"narrow where there are few", func(in *ClaimInput) { in.Room.Nodes = 3 }, time.Second},
		{"wider with each node", func(in *ClaimInput) { in.Room.Nodes = 500 }, 10 * time.Second},
		{"not wider than the flag says", func(in *ClaimInput) { in.Room.Nodes = 5000 }, 20 * time.Second},
		{"wider with each try", func(in *ClaimInput) { in.Race.Tries = 1 }, 40 * time.Second},
		{"up to the other flag", func(in *ClaimInput) { in.Race.Tries = 100 }, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := bound(plain(onNode, unknown, c.edit)); got != c.want {
				t.Errorf("the longest of 500 is %v, want %v", got, c.want)
			}
		})
	}
}

// TestFewSpeak: an event of each node for each claim that nobody can have would be a storm.
func TestFewSpeak(t *testing.T) {
	for _, c := range []struct{ nodes, least, most int }{{1, 1, 1}, {8, 8, 8}, {0, 500, 500}, {500, 1, 25}} {
		speakers := 0
		for i := range max(c.nodes, 500) {
			in := plain(onNode, room(0, func(r *RoomState) { r.Nodes = c.nodes }))
			in.Node = fmt.Sprint("n", i)
			if in.isSpeaker() && (c.nodes == 0 || i < c.nodes) {
				speakers++
			}
		}
		if speakers < c.least || speakers > c.most {
			t.Errorf("of %d nodes %d speak, want %d to %d", c.nodes, speakers, c.least, c.most)
		}
	}
}

// TestStrays: what was made here while the claim went to another node is no volume of that claim.
func TestStrays(t *testing.T) {
	made := plain(onNode, node("n1"))
	attempt := NextClaimStep(made).(Create).Attempt
	open := attempt.asOpen()
	done := open.asMade(&csi.Volume{VolumeId: "vol-1", CapacityBytes: gib})
	for _, c := range []struct {
		name    string
		attempt *Attempt
		edits   []func(*ClaimInput)
		want    string
	}{
		{"still ours", done, []func(*ClaimInput){node("n1")}, "Save: pvc-" + uid},
		{"given back", done, nil, "Save: pvc-" + uid},
		{"another node's", done, []func(*ClaimInput){node("n2")}, "Discard: pvc-" + uid},
		{"another node's, and not known yet", open, []func(*ClaimInput){node("n2")}, "Resume: pvc-" + uid},
		{"gone", done, []func(*ClaimInput){func(in *ClaimInput) { in.Claim = nil }}, "Save: pvc-" + uid},
		{"going", done, []func(*ClaimInput){node("n2"), func(in *ClaimInput) { in.Claim.DeletionTimestamp = gone }}, "Save: pvc-" + uid},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := plain(append([]func(*ClaimInput){onNode}, c.edits...)...)
			in.Attempt = c.attempt
			if d := cmp.Diff(c.want, showRace(NextClaimStep(in))); d != "" {
				t.Error(d)
			}
		})
	}
	if got := attempt.Node; got != "n1" {
		t.Errorf("the attempt is for node %q", got)
	}
}
