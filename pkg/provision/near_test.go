// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// inZones makes a driver topology-aware that can restore and clone, with a node in each of three zones.
func inZones(in *ClaimInput) {
	in.Capabilities = capability.Of([]capability.Plugin{
		csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	}, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, csi.ControllerServiceCapability_RPC_CLONE_VOLUME)
	for node, zone := range map[string]string{"n1": "a", "n2": "b", "n3": "c"} {
		in.Topology.SetNode(node, map[string]string{"zone": zone})
		in.Topology.SetDriverKeys(node, []string{"zone"})
	}
}

func preferSource(in *ClaimInput) { in.RestoreTopology = PreferSource }

func volumeIn(zone string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		NodeAffinity: topology.Affinity([]*csi.Topology{{Segments: map[string]string{"zone": zone}}}),
	}}
}

func TestRestoresPreferTheirSource(t *testing.T) {
	says := func(text string) func(*ClaimInput) {
		return contentIs(func(c *snapv1.VolumeSnapshotContent) {
			c.Annotations = map[string]string{wellknown.AnnSourceTopology: text}
		})
	}
	takenFrom := func(zone string) func(*ClaimInput) {
		return func(in *ClaimInput) { in.Source.Volume = volumeIn(zone) }
	}
	sourceIn := func(zone string) func(*ClaimInput) {
		return sourceVolumeIs(func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity = volumeIn(zone).Spec.NodeAffinity })
	}
	onlyIn := func(zones ...string) func(*ClaimInput) {
		return func(in *ClaimInput) {
			in.Class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: zones}}}}
		}
	}
	// Without any hint the claim "data" begins with zone a.
	for _, c := range []struct {
		name    string
		edits   []func(*ClaimInput)
		want    string
		warning string
	}{
		{name: "by default the source does not count", edits: restore(inZones, says(`[{"zone":"c"}]`)), want: "a b c"},
		{name: "what the content says", edits: restore(inZones, preferSource, says(`[{"zone":"c"}]`)), want: "c a b"},
		{name: "it counts for more than the source volume of now", edits: restore(inZones, preferSource, says(`[{"zone":"c"}]`), takenFrom("b")), want: "c a b"},
		{name: "the source volume of an older snapshot", edits: restore(inZones, preferSource, takenFrom("b")), want: "b a c"},
		{name: "nothing is known", edits: restore(inZones, preferSource), want: "a b c"},
		{name: "nonsense is told and then the volume counts", edits: restore(inZones, preferSource, says(`zone c`), takenFrom("b")), want: "b a c",
			warning: "annotation csi-tandem.io/source-topology of VolumeSnapshotContent content says where the snapshot's data is and cannot be understood, so the new volume may be far from it: reading a JSON list of topology segments: "},
		{name: "allowedTopologies win", edits: restore(inZones, preferSource, onlyIn("b", "c"), says(`[{"zone":"a"}]`)), want: "c b"},
		{name: "within allowedTopologies the source comes first", edits: restore(inZones, preferSource, onlyIn("b", "c"), says(`[{"zone":"b"}]`)), want: "b c"},
		{name: "the selected node wins", edits: restore(inZones, preferSource, node("n2"), says(`[{"zone":"c"}]`)), want: "b c a"},
		{name: "nonsense does not matter for a selected node", edits: restore(inZones, preferSource, node("n2"), says(`zone c`)), want: "b c a"},
		{name: "a clone", edits: clone(inZones, preferSource, sourceIn("c")), want: "c a b"},
		{name: "a clone by default", edits: clone(inZones, sourceIn("c")), want: "a b c"},
		{name: "a clone of a volume without affinity", edits: clone(inZones, preferSource), want: "a b c"},
		{name: "an empty volume has no source", edits: edits{inZones, preferSource}, want: "a b c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			attempt := created(t, plain(c.edits...))
			var zones []string
			for _, place := range attempt.Request.GetAccessibilityRequirements().GetPreferred() {
				zones = append(zones, place.GetSegments()["zone"])
			}
			if got := strings.Join(zones, " "); got != c.want {
				t.Errorf("preferred %s, want %s", got, c.want)
			}
			if len(attempt.Request.GetAccessibilityRequirements().GetRequisite()) != len(zones) {
				t.Error("the hint changed which segments are offered")
			}
			switch {
			case c.warning == "" && len(attempt.Warnings) > 0, len(attempt.Warnings) > 1:
				t.Error(attempt.Warnings)
			case c.warning != "" && (len(attempt.Warnings) == 0 || !strings.HasPrefix(attempt.Warnings[0].Text, c.warning)):
				t.Error("not warned:", attempt.Warnings)
			}
		})
	}
}
