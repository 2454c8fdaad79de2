// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/params"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

const reserved = "csi.storage.k8s.io/"

func naming(prefix string, length int) func(*ClaimInput) {
	return func(in *ClaimInput) { in.NamePrefix, in.NameLength = prefix, length }
}

func TestRequestRefusals(t *testing.T) {
	runClaims(t, []claimRow{
		{"T17 custom name", edits{naming("x", 5)}, "Create: x-a1b2c"},
		{"T17 no prefix", edits{naming("", wellknown.FullUID)}, "Reject: volume name prefix cannot be of length 0"},
		{"no UID", edits{func(in *ClaimInput) { in.Claim.UID = "" }}, "Reject: corrupted PVC object, it is missing UID"},
		{"T19 fstype twice", edits{parameters("fstype", "xfs", reserved+"fstype", "xfs")},
			`Reject: fstype specified in parameters with both "fstype" and "csi.storage.k8s.io/fstype" keys`},
		{"T21 unknown reserved parameter", edits{parameters(reserved+"foo", "1")},
			`Reject: failed to strip CSI Parameters of prefixed keys: found unknown parameter key "csi.storage.k8s.io/foo" with reserved namespace csi.storage.k8s.io/`},
		{"unknown access mode", edits{func(in *ClaimInput) { in.Claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{"Odd"} }},
			"Reject: unsupported AccessMode combination: [Odd]"},
		{"T32 a secret in part", edits{parameters(reserved+"node-stage-secret-name", "s")},
			"Reject: failed to get name and namespace template from params: either name and namespace for NodeStage secrets specified, Both must be specified"},
		{"order: secrets before parameters", edits{parameters(reserved+"foo", "1", reserved+"secret-name", "s")},
			"Reject: failed to get default name and namespace template from params: either name and namespace for Default secrets specified, Both must be specified"},
		{"T84 the CSINode is gone", edits{withTopology, node("n3")},
			`Reschedule: error generating accessibility requirements: CSINode "n3" of the selected node not found`},
		{"T83 no place known", edits{withTopology, func(in *ClaimInput) {
			in.Topology.RemoveCSINode("n1")
			in.Topology.RemoveCSINode("n2")
		}}, `Reject: error generating accessibility requirements: no available topology found: no CSINode lists topology keys of driver "d"`},
		{"T87 the request follows the node of now", edits{withTopology, node("n2")}, ours},
		{"topology off: nodes do not matter", edits{withTopology, node("n3"), func(in *ClaimInput) { in.Options.Topology = false }}, ours},
	})
}

func TestAttributesClass(t *testing.T) {
	named := func(in *ClaimInput) { in.Claim.Spec.VolumeAttributesClassName = of("gold") }
	modify := can(csi.ControllerServiceCapability_RPC_MODIFY_VOLUME)
	read := func(driver string, err error) func(*ClaimInput) {
		return func(in *ClaimInput) {
			in.Attributes = &AttributesState{Err: err, Class: &storagev1.VolumeAttributesClass{
				ObjectMeta: metav1.ObjectMeta{Name: "gold"}, DriverName: driver, Parameters: map[string]string{"iops": "9"},
			}}
		}
	}
	runClaims(t, []claimRow{
		{"T26 read first", edits{modify, named}, "ReadAttributes: gold"},
		{"T26 read", edits{modify, named, read("d", nil)}, ours},
		{"T27 missing", edits{modify, named, read("d", errors.New("not there"))}, "Reject: not there"},
		{"T27 another driver's", edits{modify, named, read("e", nil)}, "Reject: VAC gold referenced in PVC is for driver e which does not match driver name d"},
	})
	attempt := created(t, plain(modify, named, read("d", nil), parameters("iops", "1")))
	if d := cmp.Diff(map[string]string{"iops": "9"}, attempt.Request.MutableParameters); d != "" {
		t.Error(d)
	}
	if attempt.Request.Parameters["iops"] != "1" || *attempt.Volume.Spec.VolumeAttributesClassName != "gold" {
		t.Error("T26: the class parameter of the same name, or the field of the volume")
	}
}

func TestParametersAndNames(t *testing.T) {
	attempt := created(t, plain(parameters("fstype", "xfs", "tier", reserved+"foo"), func(in *ClaimInput) { in.ExtraCreateMetadata = true }))
	want := map[string]string{
		"fstype": "xfs", "tier": reserved + "foo",
		reserved + "pvc/name": "data", reserved + "pvc/namespace": "ns1", reserved + "pv/name": "pvc-" + uid,
	}
	if d := cmp.Diff(want, attempt.Request.Parameters); d != "" {
		t.Error("T18 T21 T22", d)
	}
	if size := created(t, plain(asks("1.5"))).Request.CapacityRange.RequiredBytes; size != 2 {
		t.Errorf("a request in fractions is %d bytes", size)
	}
	if size := created(t, plain(func(in *ClaimInput) { in.Claim.Spec.Resources.Requests = nil })).Request.CapacityRange.RequiredBytes; size != 0 {
		t.Errorf("no request is %d bytes", size)
	}
}

func TestFileSystems(t *testing.T) {
	for _, c := range []struct {
		name string
		in   ClaimInput
		want string
	}{
		{"T18 prefixed", plain(parameters(reserved+"fstype", "xfs")), "xfs xfs"},
		{"T18 old", plain(parameters("FsType", "xfs")), "xfs xfs"},
		{"T20 default", plain(func(in *ClaimInput) { in.DefaultFSType = "ext4" }), "ext4 ext4"},
		{"T20 nothing", plain(), " "},
		{"T20 block", plain(block, parameters("fstype", "xfs")), "block "},
	} {
		attempt := created(t, c.in)
		capability := attempt.Request.VolumeCapabilities[0]
		got := capability.GetMount().GetFsType()
		if capability.GetBlock() != nil {
			got = "block"
		}
		if got += " " + attempt.Volume.Spec.CSI.FSType; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func modes(modes ...corev1.PersistentVolumeAccessMode) func(*ClaimInput) {
	return func(in *ClaimInput) { in.Claim.Spec.AccessModes = modes }
}

func TestAccessModes(t *testing.T) {
	single := can(csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)
	for _, c := range []struct {
		name string
		in   ClaimInput
		want string
	}{
		{"T23 RWX", plain(modes(corev1.ReadWriteMany)), "MULTI_NODE_MULTI_WRITER"},
		{"T23 ROX", plain(modes(corev1.ReadOnlyMany)), "MULTI_NODE_READER_ONLY"},
		{"T23 RWO", plain(modes(corev1.ReadWriteOnce)), "SINGLE_NODE_WRITER"},
		{"T23 RWOP", plain(modes(corev1.ReadWriteOncePod)), "SINGLE_NODE_WRITER"},
		{"T23 RWX with the capability", plain(single, modes(corev1.ReadWriteMany)), "MULTI_NODE_MULTI_WRITER"},
		{"T23 ROX with the capability", plain(single, modes(corev1.ReadOnlyMany)), "MULTI_NODE_READER_ONLY"},
		{"T23 RWO with the capability", plain(single, modes(corev1.ReadWriteOnce)), "SINGLE_NODE_MULTI_WRITER"},
		{"T23 RWOP with the capability", plain(single, modes(corev1.ReadWriteOncePod)), "SINGLE_NODE_SINGLE_WRITER"},
		{"T23 B085 two modes in the claim's order", plain(modes(corev1.ReadOnlyMany, corev1.ReadWriteOnce)), "MULTI_NODE_READER_ONLY SINGLE_NODE_WRITER"},
		{"duplicates stay", plain(modes(corev1.ReadWriteOnce, corev1.ReadWriteOnce)), "SINGLE_NODE_WRITER SINGLE_NODE_WRITER"},
	} {
		var got []string
		for _, capability := range created(t, c.in).Request.VolumeCapabilities {
			got = append(got, capability.GetAccessMode().GetMode().String())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

func TestReadOnlyVolumes(t *testing.T) {
	flag := func(in *ClaimInput) { in.PublishReadOnly = true }
	for _, c := range []struct {
		name string
		in   ClaimInput
		want bool
	}{
		{"T24 only reading", plain(flag, modes(corev1.ReadOnlyMany)), true},
		{"T24 flag off", plain(modes(corev1.ReadOnlyMany)), false},
		{"T24 a second mode", plain(flag, modes(corev1.ReadOnlyMany, corev1.ReadWriteOnce)), false},
		{"T24 writing", plain(flag), false},
	} {
		if got := created(t, c.in).Volume.Spec.CSI.ReadOnly; got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestTopologyOfRequests(t *testing.T) {
	attempt := created(t, plain(withTopology, node("n2")))
	if got := attempt.Request.AccessibilityRequirements.Preferred[0].Segments["zone"]; got != "b" || attempt.Node != "n2" || !attempt.Topology {
		t.Errorf("preferred %s for node %s", got, attempt.Node)
	}
	alpha := created(t, plain(withTopology, annotate(wellknown.AnnAlphaSelectedNode, "n1")))
	if alpha.Node != "n1" {
		t.Errorf("the alpha key gives %q", alpha.Node)
	}
	off := created(t, plain(withTopology, node("n2"), func(in *ClaimInput) { in.Options.Topology = false }))
	if off.Request.AccessibilityRequirements != nil || off.Node != "" || off.Topology {
		t.Error("T88: topology is off and is sent")
	}
}

// TestWholeObjects (T55): the request and the volume of a claim that uses everything, whole, and of one that
// uses nothing (T31). Where the driver's context has the key of our identity, it wins (T56).
func TestWholeObjects(t *testing.T) {
	everything := restore(func(in *ClaimInput) {
		withTopology(in)
		in.Capabilities = everyCapability()
		in.Class.MountOptions = []string{"noatime"}
		in.Claim.Spec.VolumeMode = of(corev1.PersistentVolumeFilesystem)
	}, node("n1"), annotate("team", "blue"), parameters(
		"tier", "gold", reserved+"fstype", "xfs",
		reserved+"secret-name", "default", reserved+"secret-namespace", "system",
		reserved+"provisioner-secret-name", "p-${pvc.annotations['team']}", reserved+"provisioner-secret-namespace", "${pvc.namespace}",
		reserved+"controller-modify-secret-name", "modify", reserved+"controller-modify-secret-namespace", "system",
		"csiNodePublishSecretName", "publish", "csiNodePublishSecretNamespace", "system",
	))
	attempt := created(t, plain(everything...))
	golden(t, "request-everything", attempt.WithSecrets(map[string]string{"user": "u"}))
	golden(t, "volume-everything", built(t, attempt, &csi.Volume{
		VolumeId: "h", CapacityBytes: 2 << 30,
		VolumeContext:      map[string]string{"portal": "x", wellknown.VolumeAttributeIdentity: "the driver's"},
		AccessibleTopology: []*csi.Topology{{Segments: map[string]string{"zone": "a", "rack": "1"}}, {Segments: map[string]string{"zone": "b"}}},
	}))
	simple := created(t, plain())
	golden(t, "request-simple", simple.WithSecrets(nil))
	golden(t, "volume-simple", built(t, simple, &csi.Volume{
		VolumeId: "h", AccessibleTopology: []*csi.Topology{{Segments: map[string]string{"zone": "a"}}},
	}))
	if simple.Request.Secrets != nil || attempt.Request.Secrets != nil {
		t.Error("secrets stay in the attempt")
	}
	if d := cmp.Diff(&corev1.SecretReference{Namespace: "ns1", Name: "p-blue"}, attempt.Secret); d != "" {
		t.Error(d)
	}
	if len(volumeSecrets) != 7 || volumeSecrets[0] != params.Provisioner {
		t.Error("the seven kinds, the provisioner's first")
	}
}

// TestMountOptions (T25): they go to the driver as flags and stay on the volume, in order.
func TestMountOptions(t *testing.T) {
	attempt := created(t, plain(func(in *ClaimInput) { in.Class.MountOptions = []string{"noatime", "discard"} }))
	if d := cmp.Diff([]string{"noatime", "discard"}, attempt.Request.VolumeCapabilities[0].GetMount().GetMountFlags()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"noatime", "discard"}, built(t, attempt, &csi.Volume{VolumeId: "h"}).Spec.MountOptions); d != "" {
		t.Error(d)
	}
}

func TestVolumesDoNotShareWithCaches(t *testing.T) {
	in := plain()
	in.Class.MountOptions = []string{"noatime"}
	volume := built(t, created(t, in), &csi.Volume{VolumeId: "h"})
	volume.Spec.MountOptions[0], volume.Spec.AccessModes[0] = "changed", "changed"
	if in.Class.MountOptions[0] != "noatime" || in.Claim.Spec.AccessModes[0] != corev1.ReadWriteOnce {
		t.Error("an object of a cache was changed")
	}
}
