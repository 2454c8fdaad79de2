// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

const ignored = "event default/data: Warning TopologyIgnored "

// inZones is a world of three nodes in two zones, with racks, and a class with these allowedTopologies.
func inZones(t *testing.T, terms ...corev1.TopologySelectorTerm) *kit.Harness {
	h := kit.New(t)
	h.Driver.Capabilities = withTopology()
	class := kit.Class(kit.ClassName, kit.WaitForConsumer)
	class.AllowedTopologies = terms
	h.Put(class,
		kit.Node("n1", map[string]string{"zone": "a", "rack": "1"}), kit.CSINode("n1", "zone", "rack"),
		kit.Node("n2", map[string]string{"zone": "b", "rack": "2"}), kit.CSINode("n2", "zone", "rack"),
		kit.Node("n3", map[string]string{"zone": "a", "rack": "3"}), kit.CSINode("n3", "zone", "rack"),
		kit.Claim("data", kit.OnNode("n1")))
	return h
}

func place(labels map[string]string) kit.Reply {
	return kit.Reply{Volume: func(v *csi.Volume) *csi.Volume {
		v.AccessibleTopology = []*csi.Topology{{Segments: labels}}
		return v
	}}
}

// Whoever does not get the place that the selected node seems to promise hears of it, once.
func TestIgnoredPlacesAreTold(t *testing.T) {
	made := []string{"driver CreateVolume " + name + created, "create persistentvolumes " + name, provisioned + name}
	zoneA := corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a"}}}}
	strict := func(o *claim.Options, _ *claim.Deps) { o.Places.Strict = true }
	for _, c := range []struct {
		name  string
		allow []corev1.TopologySelectorTerm
		reply kit.Reply
		edits []func(*claim.Options, *claim.Deps)
		want  []string
	}{
		{name: "the volume is at the node: nothing to tell", reply: place(map[string]string{"zone": "a", "rack": "1"}), want: made},
		{name: "allowedTopologies hold the node only by a wider segment", allow: []corev1.TopologySelectorTerm{zoneA}, reply: place(map[string]string{"zone": "a"}),
			want: append([]string{ignored + `the segment {rack: 1, zone: a} of the selected node "n1" is not in allowedTopologies of class "fast", which name the wider {zone: a}: the driver may put the volume anywhere in there, also where that node cannot reach it; add values for [rack] to allowedTopologies, which can be edited in place, or use --strict-topology`}, made...)},
		{name: "strict topology asks for the node's own", allow: []corev1.TopologySelectorTerm{zoneA}, edits: []func(*claim.Options, *claim.Deps){strict},
			reply: place(map[string]string{"zone": "a", "rack": "1"}), want: made},
		{name: "allowedTopologies without values", allow: []corev1.TopologySelectorTerm{{}}, reply: place(map[string]string{"zone": "a"}),
			want: append([]string{ignored + `allowedTopologies of class "fast" have terms without keys or values and name no segment: the driver may put the volume anywhere, also where the selected node "n1" cannot reach it; give each key its values, or leave allowedTopologies out`}, made...)},
		{name: "the volume came elsewhere", reply: place(map[string]string{"zone": "b", "rack": "2"}),
			want: append(append([]string{}, made...), ignored+"volume "+name+` is not at the selected node: it can be reached from [{rack: 2, zone: b}] only, and the selected node "n1" is in {rack: 1, zone: a}; without --strict-topology the driver may choose any segment that it is offered, so the pod has to run elsewhere; with --strict-topology it is offered the node's only`)},
		{name: "the volume came elsewhere against strict topology", edits: []func(*claim.Options, *claim.Deps){strict}, reply: place(map[string]string{"zone": "b", "rack": "2"}),
			want: append(append([]string{}, made...), ignored+"volume "+name+` is not where it was asked for: it can be reached from [{rack: 2, zone: b}] only, and the selected node "n1" is in {rack: 1, zone: a}, although the driver was asked for that node's segment only; the pod has to run elsewhere, and the driver should be looked at`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := inZones(t, c.allow...)
			h.Driver.Next("CreateVolume", c.reply)
			start(h, c.edits...)
			h.Settle()
			want(t, h, c.want...)
		})
	}
}

func TestOneWarningPerClassAndCause(t *testing.T) {
	h := inZones(t, corev1.TopologySelectorTerm{})
	other := kit.Class("slow", kit.WaitForConsumer)
	other.AllowedTopologies = []corev1.TopologySelectorTerm{{}}
	inSlow := func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &other.Name }
	h.Put(other, kit.Claim("second", kit.OnNode("n2")), kit.Claim("third", kit.OnNode("n2"), inSlow))
	start(h)
	h.Settle()
	told := 0
	for _, event := range h.Recorder.Events() {
		if len(event) > 24 && event[:24] == "Warning TopologyIgnored " {
			told++
		}
	}
	if told != 2 {
		t.Errorf("two classes have a cause each, and %d warnings were told:\n%v", told, h.Recorder.Events())
	}
	if volumes := kit.All[*corev1.PersistentVolume](h.API); len(volumes) != 3 {
		t.Errorf("%d volumes of 3", len(volumes))
	}
}

// TestMisspeltKeyIsToldWithEachClaim: a class with a slip in a key of allowedTopologies fails each of its claims, in the words of the driver
// alone. Catches a warning that only the first of them has.
func TestMisspeltKeyIsToldWithEachClaim(t *testing.T) {
	h := inZones(t)
	now := kit.Class("now")
	now.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zome", Values: []string{"a"}}}}}
	inNow := func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &now.Name }
	h.Put(now, kit.Claim("first", inNow), kit.Claim("second", inNow))
	start(h)
	h.Settle()
	told := `Warning TopologyIgnored allowedTopologies of class "now" name the key zome, which the driver has on no node, did you mean zone?`
	n := 0
	for _, event := range h.Recorder.Events() {
		if strings.HasPrefix(event, told) {
			n++
		}
	}
	if n != 2 {
		t.Errorf("told %d times of two:\n%v", n, h.Recorder.Events())
	}
}
