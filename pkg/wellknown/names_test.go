// SPDX-License-Identifier: Apache-2.0

package wellknown

import (
	"strings"
	"testing"
)

const uid = "a1b2c3d4-0000-1111-2222-333344445555"

// TestNameIsOfItsUID: a name on record is used whatever the flags are by now, but one that was copied from another object is not.
func TestNameIsOfItsUID(t *testing.T) {
	for _, of := range []string{Name("a", uid, FullUID), Name("a-b", uid, 8), Name("a", uid, 1), Name("a", uid, MaxUIDDigits)} {
		if !IsNameFor(of, uid) {
			t.Errorf("%s is of %s", of, uid)
		}
	}
	const other = "99999999-0000-1111-2222-333344445555"
	for _, of := range []string{"", "a", "-", "a-", uid, Name("a", other, FullUID), Name("a", other, 8), Name("a", uid, MaxUIDDigits) + "0"} {
		if IsNameFor(of, uid) {
			t.Errorf("%s is not of %s", of, uid)
		}
	}
	if IsNameFor("a-", "") || IsNameFor("a-1", "") {
		t.Error("nothing is of no UID")
	}
}

func TestName(t *testing.T) {
	for _, c := range []struct {
		prefix string
		length int
		want   string
	}{
		{"pvc", FullUID, "pvc-" + uid},
		{"x", 5, "x-a1b2c"},
		{"x", 9, "x-a1b2c3d40"},
		{"x", MaxUIDDigits, "x-a1b2c3d4000011112222333344445555"},
		{"x", 99, "x-a1b2c3d4000011112222333344445555"},
		{"x", -7, "x-"},
	} {
		if got := Name(c.prefix, uid, c.length); got != c.want {
			t.Errorf("Name(%q, uid, %d) = %q, want %q", c.prefix, c.length, got, c.want)
		}
	}
}

func TestCheckNameParts(t *testing.T) {
	for _, c := range []struct {
		prefix string
		length int
		ok     bool
	}{
		{"pvc", FullUID, true}, {"pvc", 1, true}, {"pvc", 32, true},
		{"My_Cluster", FullUID, true}, {strings.Repeat("x", 91), FullUID, true}, {strings.Repeat("x", 92), FullUID, false},
		{"", FullUID, false}, {"pvc", 0, false}, {"pvc", 33, false}, {"pvc", -2, false},
	} {
		if err := CheckNameParts("volume-name", c.prefix, c.length); (err == nil) != c.ok {
			t.Errorf("CheckNameParts(%q, %d) = %v, want ok %v", c.prefix, c.length, err, c.ok)
		}
	}
}

func TestCheckObjectPrefix(t *testing.T) {
	for prefix, ok := range map[string]bool{
		"pvc": true, "a.b-c": true, "pvc-": true, "0": true, "": true, // empty has its own error
		"Bad": false, "bad_prefix": false, "-x": false, "x.": false, "a..b": false, "a b": false,
	} {
		if err := CheckObjectPrefix("volume-name", prefix); (err == nil) != ok {
			t.Errorf("CheckObjectPrefix(%q) = %v, want ok %v", prefix, err, ok)
		}
	}
}

func TestSanitizeLease(t *testing.T) {
	for in, want := range map[string]string{
		"a.b/c_d.":                              "a-b-c-d-X",
		"hostpath.csi.k8s.io":                   "hostpath-csi-k8s-io",
		SnapshotterLease("a.b/c"):               "external-snapshotter-leader-a-b-c",
		SnapshotterLease("hostpath.csi.k8s.io"): "external-snapshotter-leader-hostpath-csi-k8s-io",
	} {
		if got := SanitizeLease(in); got != want {
			t.Errorf("SanitizeLease(%q) = %q, want %q", in, got, want)
		}
	}
}

// The strings below are what other programs in a cluster look for; a change here breaks a switch.
func TestProtocolStringsArePinned(t *testing.T) {
	for got, want := range map[string]string{
		FinalizerVolume:            "external-provisioner.volume.kubernetes.io/finalizer",
		FinalizerCloneSource:       "provisioner.storage.kubernetes.io/cloning-protection",
		FinalizerSnapshotAsSource:  "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection",
		FinalizerSnapshotSource:    "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection",
		FinalizerSnapshotBound:     "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection",
		FinalizerContent:           "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection",
		FinalizerSourceClaim:       "snapshot.storage.kubernetes.io/pvc-as-source-protection",
		AnnBeingCreated:            "snapshot.storage.kubernetes.io/volumesnapshot-being-created",
		AnnBeingDeleted:            "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted",
		AnnGroupSnapshotHandle:     "groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle",
		AnnDeletionSecretName:      "volume.kubernetes.io/provisioner-deletion-secret-name",
		AnnDeletionSecretNamespace: "volume.kubernetes.io/provisioner-deletion-secret-namespace",
		AnnSelectedNode:            "volume.kubernetes.io/selected-node",
		AnnStorageProvisioner:      "volume.kubernetes.io/storage-provisioner",
		AnnProvisionedBy:           "pv.kubernetes.io/provisioned-by",
		VolumeAttributeIdentity:    "storage.kubernetes.io/csiProvisionerIdentity",
		ContentName("u"):           "snapcontent-u",
		VolumeNameFromUID("u"):     "pvc-u",
		ParamPVCName:               "csi.storage.k8s.io/pvc/name",
		AnnSourceTopology:          "csi-tandem.io/source-topology",
		AnnLed:                     "csi-tandem.io/led",
		ParamClaimLabel:            "csi-tandem.io/pvc-label/",
		ParamClaimAnnotation:       "csi-tandem.io/pvc-annotation/",
		ParamNamespaceLabel:        "csi-tandem.io/namespace-label/",
		ParamNamespaceAnnotation:   "csi-tandem.io/namespace-annotation/",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
