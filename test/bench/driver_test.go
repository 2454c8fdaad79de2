// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// The driver must be one that a sidecar cannot tell from a good one: whoever asks twice gets the same answer. And it must
// count both, since it is the witness for calls.
func TestDriver(t *testing.T) {
	dir, err := os.MkdirTemp("", "bench-") // The path of a socket has little room.
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "d.sock")
	d, err := startDriver(socket, driverName, map[string]string{hostKey: "node-0"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.stop()
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	controller := csi.NewControllerClient(connection)
	request := &csi.CreateVolumeRequest{Name: "a", CapacityRange: &csi.CapacityRange{RequiredBytes: 5}}
	first, err := controller.CreateVolume(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	again, err := controller.CreateVolume(t.Context(), request)
	if err != nil || first.GetVolume().GetVolumeId() != again.GetVolume().GetVolumeId() {
		t.Errorf("%v is not %v: %v", again, first, err)
	}
	if all, most := d.count("CreateVolume"); all != 2 || most != 2 {
		t.Errorf("%d calls, %d for one", all, most)
	}
	if d.answeredAt("a").IsZero() || !d.answeredAt("b").IsZero() {
		t.Error("it does not know what it answered")
	}
	snapshot, err := controller.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: first.GetVolume().GetVolumeId()})
	if err != nil || !snapshot.GetSnapshot().GetReadyToUse() || snapshot.GetSnapshot().GetSizeBytes() != 5 {
		t.Errorf("%v, %v", snapshot, err)
	}
	d.be(0, codes.Unavailable)
	for _, tier := range []string{"a", "b"} {
		_, err = controller.GetCapacity(t.Context(), &csi.GetCapacityRequest{Parameters: map[string]string{"tier": tier}})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("away, and the answer is %v", err)
		}
	}
	if n := d.subjects("GetCapacity"); n != 2 {
		t.Errorf("two classes were asked about as %d", n)
	}
	d.forget()
	if all, _ := d.count("GetCapacity"); all != 0 {
		t.Errorf("%d calls after forgetting", all)
	}
}
