// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// local is the configuration of the process on node n1.
func local(edits ...func(*Config)) Config {
	c := config()
	c.Local = Local{Node: "n1", Segment: topology.SegmentOf(map[string]string{"host": "n1"})}
	c.Racing.Max = time.Minute
	for _, edit := range edits {
		edit(&c)
	}
	return c
}

// volumeOf is a volume that is to be deleted, made by the process with an identity, reachable from hosts.
func volumeOf(identity string, hosts ...string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv", Finalizers: []string{wellknown.FinalizerVolume}, Annotations: map[string]string{wellknown.AnnProvisionedBy: "d"}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef:                      &corev1.ObjectReference{Namespace: "ns1", Name: "data", UID: uid},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "d", VolumeHandle: "vol-1", VolumeAttributes: map[string]string{wellknown.VolumeAttributeIdentity: identity},
			}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased},
	}
	if len(hosts) > 0 {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "host", Operator: corev1.NodeSelectorOpIn, Values: hosts}},
		}}}}
	}
	return v
}

func bound(v *corev1.PersistentVolume) *corev1.PersistentVolume {
	v.Status.Phase, v.Finalizers = corev1.VolumeBound, nil
	return v
}

func TestVolumesOfNodes(t *testing.T) {
	const other = "Ignore: the volume is on another node, whose provisioner sees to it"
	odd := volumeOf("1-2-d-n2", "n1")
	odd.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Near"
	for _, c := range []struct {
		name   string
		config Config
		volume *corev1.PersistentVolume
		since  time.Time
		want   string
	}{
		{name: "T100 own node", volume: volumeOf("1-2-d-n1", "n1"), want: "Confirm"},
		{name: "T100 other node", volume: volumeOf("1-2-d-n2", "n2"), want: other},
		{name: "T100 other node, nobody knows who made it", volume: volumeOf("", "n2"), want: other},
		{name: "T100 own node, made before there was one process for each", volume: volumeOf("1-2-d", "n1"), want: "Confirm"},
		// A driver says of a volume that it does not have that it is gone: whoever asks the wrong one loses the data's
		// last trace.
		{name: "T100 no affinity, and the other node made it", volume: volumeOf("1-2-d-n2"), want: other},
		{name: "T100 no affinity, and this node made it", volume: volumeOf("1-2-d-n1"), want: "Confirm"},
		{name: "T100 no affinity, and nobody knows who made it", volume: volumeOf(""), want: "Confirm"},
		{name: "T100 an affinity that cannot be read", volume: odd, want: other},
		{name: "who made it deletes it, wherever the driver has put it", volume: volumeOf("1-2-d-n1", "n2"), want: "Confirm"},
		{name: "P-11 what both reach is left to who made it", volume: volumeOf("1-2-d-n2", "n1", "n2"), since: now, want: "Wait: 1m0s"},
		{name: "P-11 for a while", volume: volumeOf("1-2-d-n2", "n1", "n2"), since: now.Add(-time.Minute), want: "Confirm"},
		// P-11: N processes that patch the same finalizer get N-1 conflicts.
		{name: "P-11 the finalizer of another node's", volume: bound(volumeOf("1-2-d-n2", "n2")), want: other},
		{name: "P-11 the finalizer of an own one", volume: bound(volumeOf("1-2-d-n1", "n1")), want: "Protect"},
		{name: "a node whose name has dashes", config: local(func(c *Config) { c.Node = "rack-1-n1" }), volume: volumeOf("1-2-d-rack-1-n1"), want: "Confirm"},
		{name: "a driver whose name begins like another", volume: volumeOf("1-2-d-extra-n1"), want: other},
		{name: "places do not matter", config: local(func(c *Config) { c.Segment = nil }), volume: volumeOf("", "n2"), want: "Confirm"},
		{name: "the whole cluster", config: config(), volume: volumeOf("1-2-d-n2", "n2"), want: "Confirm"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.config.Driver == "" {
				c.config = local()
			}
			got := NextVolumeStep(VolumeInput{Config: c.config, Now: now, Volume: c.volume, Since: c.since})
			if d := cmp.Diff(c.want, show(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestKept: a process on each node that keeps everything holds the cluster as often as there are nodes; one that
// keeps too little lets data go that somebody needs.
func TestKept(t *testing.T) {
	claim := func(edits ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := plain().Claim.DeepCopy()
		for _, edit := range edits {
			edit(c)
		}
		return c
	}
	on := func(node string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Annotations[wellknown.AnnSelectedNode] = node }
	}
	has := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }
	foreign := func(c *corev1.PersistentVolumeClaim) { c.Annotations[wellknown.AnnStorageProvisioner] = "other" }
	static := func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }
	source := func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{wellknown.FinalizerCloneSource} }
	filled := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: wellknown.KindPersistentVolumeClaim, Name: "src"}
	}
	for _, c := range []struct {
		name  string
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		{"P-11 one that waits for a node", claim(), true},
		{"P-11 one that waits, for another node", claim(on("n2")), true},
		{"P-11 own, with a volume", claim(on("n1"), has), true},
		{"P-11 another node's, with a volume", claim(on("n2"), has), false},
		{"P-11 another node's, a clone's source", claim(on("n2"), has, source), true},
		{"P-11 another driver's", claim(foreign), false},
		{"P-11 another driver's, with a volume", claim(foreign, has), false},
		{"P-11 another driver's, that waits for data", claim(foreign, filled), true},
		{"P-11 nobody knows whose, with a volume", claim(static, has), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := local().KeepsClaim(c.claim); got != c.want {
				t.Errorf("kept: %t", got)
			}
			if !config().KeepsClaim(c.claim) {
				t.Error("a process for the whole cluster keeps everything")
			}
		})
	}
	foreignVolume := volumeOf("", "n1")
	foreignVolume.Annotations, foreignVolume.Spec.CSI.Driver = nil, "other"
	for _, c := range []struct {
		name   string
		volume *corev1.PersistentVolume
		want   bool
	}{
		{"P-11 own", volumeOf("1-2-d-n1", "n1"), true},
		{"P-11 another node's", volumeOf("1-2-d-n2", "n2"), false},
		{"P-11 another driver's", foreignVolume, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := local().KeepsVolume(c.volume); got != c.want {
				t.Errorf("kept: %t", got)
			}
		})
	}
}

// TestOpenCallIsNotSettledByAnotherNode: the call of this node has no answer, and the claim has a volume that another node's process made, where this
// one sees it. Catches one that takes this for the end of its own call, and forgets what it may have made.
func TestOpenCallIsNotSettledByAnotherNode(t *testing.T) {
	for identity, want := range map[string]string{"1-2-d-n2": "Resume: pvc-" + uid, "1-2-d-n1": "AlreadyProvisioned", "": "AlreadyProvisioned"} {
		in := plain(volumeNamed("pvc-"+uid, uid), func(in *ClaimInput) { in.Config, in.Attempt = local(), created(t, plain()).asOpen() })
		in.Volume.Spec.CSI = volumeOf(identity).Spec.CSI
		in.Claim.Spec.VolumeName = in.Volume.Name
		if got := show(NextClaimStep(in)); got != want {
			t.Errorf("made by %q: %s, want %s", identity, got, want)
		}
	}
}

// TestHoldersOnOtherNodes: of two volumes with one handle, that of another node holds not the one here. Catches one that compares handles alone: the
// volume here would stay for ever. And it catches one that takes for elsewhere what may be here, and would remove what is in use.
func TestHoldersOnOtherNodes(t *testing.T) {
	attempt := created(t, plain())
	named := volumeOf("1-2-d-n2", "n2")
	named.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Key = "rack"
	for title, c := range map[string]struct {
		config Config
		volume *corev1.PersistentVolume
		want   bool
	}{
		"another node's":                     {local(), volumeOf("1-2-d-n2", "n2"), false},
		"this node's":                        {local(), volumeOf("1-2-d-n1", "n1"), true},
		"this node's, put elsewhere":         {local(), volumeOf("1-2-d-n1", "n2"), true},
		"another node's, to be reached here": {local(), volumeOf("1-2-d-n2", "n1", "n2"), true},
		"another node's, that does not say":  {local(), volumeOf("1-2-d-n2"), true},
		"another node's, by another key":     {local(), named, true},
		"by hand":                            {local(), volumeOf("", "n2"), true},
		"by one for the whole cluster":       {local(), volumeOf("1-2-d", "n2"), true},
		"places do not matter":               {local(func(c *Config) { c.Segment = nil }), volumeOf("1-2-d-n2", "n2"), true},
		"the whole cluster is served":        {config(), volumeOf("1-2-d-n2", "n2"), true},
	} {
		if got, err := c.config.Holds(c.volume, attempt, "vol-1"); got != c.want || err != nil {
			t.Errorf("%s: %t, %v", title, got, err)
		}
	}
}
