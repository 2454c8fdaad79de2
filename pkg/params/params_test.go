// SPDX-License-Identifier: Apache-2.0

package params

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDriverParameters(t *testing.T) {
	for _, c := range []struct {
		name     string
		in       map[string]string
		reserved []string
		want     map[string]string
		err      string
	}{
		{name: "nothing gives an empty map, not nil", reserved: VolumeKeys(), want: map[string]string{}},
		{
			name: "T18 the prefixed fstype is ours, the old one is the driver's too",
			in:   map[string]string{"csi.storage.k8s.io/fstype": "xfs", "FsType": "xfs", "tier": "gold"}, reserved: VolumeKeys(),
			want: map[string]string{"FsType": "xfs", "tier": "gold"},
		},
		{
			name: "T21 an unknown reserved key is a mistake, and the first in order is named",
			in:   map[string]string{"csi.storage.k8s.io/foo": "1", "csi.storage.k8s.io/bar": "1"}, reserved: VolumeKeys(),
			err: `found unknown parameter key "csi.storage.k8s.io/bar" with reserved namespace csi.storage.k8s.io/`,
		},
		{
			name: "a misspelt key is told with the one that is meant",
			in:   map[string]string{"csi.storage.k8s.io/fstipe": "xfs"}, reserved: VolumeKeys(),
			err: `found unknown parameter key "csi.storage.k8s.io/fstipe" with reserved namespace csi.storage.k8s.io/, did you mean "csi.storage.k8s.io/fstype"?`,
		},
		{
			name: "the keys of --extra-create-metadata are no class parameters",
			in:   map[string]string{"csi.storage.k8s.io/pvc/name": "x"}, reserved: VolumeKeys(),
			err: `found unknown parameter key "csi.storage.k8s.io/pvc/name" with reserved namespace csi.storage.k8s.io/`,
		},
		{
			name: "T21 values are never inspected",
			in:   map[string]string{"a": "csi.storage.k8s.io/foo"}, reserved: VolumeKeys(),
			want: map[string]string{"a": "csi.storage.k8s.io/foo"},
		},
		{
			name: "S53 snapshot classes have other keys",
			in:   map[string]string{"csi.storage.k8s.io/snapshotter-secret-name": "s", "csiSnapshotterSecretName": "old", "b": "c"}, reserved: SnapshotKeys(),
			want: map[string]string{"csiSnapshotterSecretName": "old", "b": "c"},
		},
		{
			name: "S53 a key of a StorageClass is unknown in a snapshot class",
			in:   map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "s"}, reserved: SnapshotKeys(),
			err: `found unknown parameter key "csi.storage.k8s.io/provisioner-secret-name" with reserved namespace csi.storage.k8s.io/`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := DriverParameters(c.in, c.reserved)
			if text(err) != c.err {
				t.Errorf("error %q, want %q", text(err), c.err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReservedKeysAreAllStripped(t *testing.T) {
	for name, keys := range map[string][]string{"volume": VolumeKeys(), "snapshot": SnapshotKeys()} {
		in := map[string]string{}
		for _, key := range keys {
			in[key] = "x"
		}
		if got, err := DriverParameters(in, keys); err != nil || len(got) != 0 {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	if len(VolumeKeys()) != 17 || len(SnapshotKeys()) != 8 {
		t.Errorf("%d and %d keys", len(VolumeKeys()), len(SnapshotKeys()))
	}
	if !slices.Contains(VolumeKeys(), "csi.storage.k8s.io/controller-modify-secret-namespace") {
		t.Error("a key is missing")
	}
}

func TestFSType(t *testing.T) {
	both := `fstype specified in parameters with both "fstype" and "csi.storage.k8s.io/fstype" keys`
	for _, c := range []struct {
		name     string
		in       map[string]string
		standard string
		want     string
		err      string
	}{
		{name: "T20 no key and no standard"},
		{name: "T20 no key", standard: "ext4", want: "ext4"},
		{name: "an empty value asks for the standard", in: map[string]string{"csi.storage.k8s.io/fstype": ""}, standard: "ext4", want: "ext4"},
		{name: "T18 prefixed", in: map[string]string{"csi.storage.k8s.io/fstype": "xfs"}, standard: "ext4", want: "xfs"},
		{name: "T18 old", in: map[string]string{"fstype": "xfs"}, want: "xfs"},
		{name: "T18 old in another letter case", in: map[string]string{"FsType": "xfs"}, want: "xfs"},
		{name: "T19 both", in: map[string]string{"fstype": "xfs", "csi.storage.k8s.io/fstype": "ext4"}, err: both},
		{name: "T19 both, even if equal", in: map[string]string{"fstype": "xfs", "csi.storage.k8s.io/fstype": "xfs"}, err: both},
		{name: "T19 two spellings of the old one", in: map[string]string{"fstype": "xfs", "FSTYPE": "xfs"}, err: both},
		{name: "the prefixed key is case sensitive", in: map[string]string{"csi.storage.k8s.io/FSType": "xfs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := FSType(c.in, c.standard)
			if got != c.want || text(err) != c.err {
				t.Errorf("got %q, %q; want %q, %q", got, text(err), c.want, c.err)
			}
		})
	}
}

func TestDeprecations(t *testing.T) {
	got := Deprecations(map[string]string{
		"fsType": "xfs", "csiNodeStageSecretName": "a", "csiNodeStageSecretNamespace": "b", "": "x", "tier": "gold",
	})
	want := []string{
		`"csiNodeStageSecretName" is deprecated and will be removed in a future release, please use "csi.storage.k8s.io/node-stage-secret-name" instead`,
		`"csiNodeStageSecretNamespace" is deprecated and will be removed in a future release, please use "csi.storage.k8s.io/node-stage-secret-namespace" instead`,
		`"fsType" is deprecated and will be removed in a future release, please use "csi.storage.k8s.io/fstype" instead`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := Deprecations(map[string]string{"csi.storage.k8s.io/fstype": "xfs"}); got != nil {
		t.Errorf("got %q", got)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
