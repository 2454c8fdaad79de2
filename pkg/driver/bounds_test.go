// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// TestAnAnswerThatIsTooLargeIsNone goes through gRPC itself, whose limit is 4 MiB. Catches a client that takes its own refusal
// to read for the driver's word that it has no room, and forgets the volume.
func TestAnAnswerThatIsTooLargeIsNone(t *testing.T) {
	s := serve(t)
	large := strings.Repeat("x", 5<<20)
	s.volume, s.snapshot = &csi.Volume{VolumeId: "v", VolumeContext: map[string]string{"a": large}}, &csi.Snapshot{SnapshotId: large}
	conn := connect(t, s, driver.Options{})
	_, err := conn.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a"})
	if failure := fault.Of(err); failure == nil || failure.Code != codes.ResourceExhausted || failure.Class != fault.Uncertain {
		t.Errorf("volume: %v", err)
	}
	_, err = conn.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "a"})
	if failure := fault.Of(err); failure == nil || failure.Class != fault.Uncertain {
		t.Errorf("snapshot: %v", err)
	}
	// The driver's end has the same limit for requests, and says so in the same words.
	_, err = conn.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a", Parameters: map[string]string{"a": large}})
	if failure := fault.Of(err); failure == nil || failure.Class != fault.Uncertain {
		t.Errorf("request: %v", err)
	}
}

// TestIDsHaveABound: what no object can hold is no answer, whoever sent it.
func TestIDsHaveABound(t *testing.T) {
	s := serve(t)
	conn := connect(t, s, driver.Options{})
	for length, want := range map[int]bool{128: true, 16 << 10: true, 16<<10 + 1: false} {
		s.change(func() { s.snapshot = &csi.Snapshot{SnapshotId: strings.Repeat("i", length)} })
		made, err := conn.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "a"})
		failure := fault.Of(err)
		if want != (made != nil) || !want && (failure == nil || failure.Class != fault.Uncertain || !strings.Contains(failure.Text, "16385 bytes")) {
			t.Errorf("%d bytes: %v, %v", length, made != nil, err)
		}
	}
}

func TestNamesOfDrivers(t *testing.T) {
	s := serve(t)
	conn := connect(t, s, driver.Options{})
	for name, want := range map[string]string{
		"a": "", "disk.csi.example": "", "Disk-1.Example": "", "a_b": "", strings.Repeat("a", 63): "",
		strings.Repeat("a", 64): "a name of 64 bytes, and CSI allows 63",
		"a b":                   `the name "a b": CSI allows`, "a\nb": "CSI allows", ".a": "CSI allows", "a/b": "CSI allows", "a-": "CSI allows", "é": "CSI allows",
	} {
		s.change(func() { s.name = name })
		identity, err := conn.Identify(t.Context())
		if want == "" && (err != nil || identity.Name != name) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
