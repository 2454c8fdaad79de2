// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/examples/driver/server"
)

func TestSnapshotsBecomeReadyLater(t *testing.T) {
	r := start(t, plain)
	v := r.volume(t, ask("v", mib)).GetVolumeId()
	_, err := r.control.ReadyAfterCalls(r.ctx, "slow", 4)
	must(t, err)
	if !r.snapshot(t, "quick", v).GetReadyToUse() {
		t.Error("a snapshot outside of the rule is not ready")
	}
	slow := r.snapshot(t, "slow", v)
	looks := []bool{slow.GetReadyToUse(), r.snapshot(t, "slow", v).GetReadyToUse()}
	got, err := r.GetSnapshot(r.ctx, &csi.GetSnapshotRequest{SnapshotId: slow.GetSnapshotId()})
	must(t, err)
	listed, err := r.ListSnapshots(r.ctx, &csi.ListSnapshotsRequest{SnapshotId: slow.GetSnapshotId()})
	must(t, err)
	looks = append(looks, got.GetSnapshot().GetReadyToUse(), listed.GetEntries()[0].GetSnapshot().GetReadyToUse())
	if want := "[false false false true]"; fmt.Sprint(looks) != want {
		t.Errorf("ready: %v, want %s", looks, want)
	}
	id, err := r.control.ReadyAfter(r.ctx, "later", time.Hour)
	must(t, err)
	if r.snapshot(t, "later", v).GetReadyToUse() {
		t.Error("ready before its time")
	}
	must(t, r.control.Release(r.ctx, id))
	if !r.snapshot(t, "later", v).GetReadyToUse() {
		t.Error("not ready although released")
	}
}

func TestListSnapshots(t *testing.T) {
	r := start(t, plain)
	v, w := r.volume(t, ask("v", mib)).GetVolumeId(), r.volume(t, ask("w", mib)).GetVolumeId()
	for i := range 3 {
		r.snapshot(t, fmt.Sprint("v", i), v)
	}
	other := r.snapshot(t, "w", w).GetSnapshotId()
	for _, tt := range []struct {
		name string
		req  *csi.ListSnapshotsRequest
		want int
	}{
		{"all", &csi.ListSnapshotsRequest{}, 4},
		{"of a volume", &csi.ListSnapshotsRequest{SourceVolumeId: v}, 3},
		{"a page of a volume", &csi.ListSnapshotsRequest{SourceVolumeId: v, MaxEntries: 2}, 2},
		{"by id", &csi.ListSnapshotsRequest{SnapshotId: other}, 1},
		{"by id of another volume", &csi.ListSnapshotsRequest{SnapshotId: other, SourceVolumeId: v}, 0},
		{"by unknown id", &csi.ListSnapshotsRequest{SnapshotId: "nope"}, 0},
	} {
		resp, err := r.ListSnapshots(r.ctx, tt.req)
		must(t, err)
		if got := len(resp.GetEntries()); got != tt.want {
			t.Errorf("%s: %d entries, want %d", tt.name, got, tt.want)
		}
	}
}

func TestSnapshotRefusals(t *testing.T) {
	r := start(t, plain)
	v, w := r.volume(t, ask("v", mib)).GetVolumeId(), r.volume(t, ask("w", mib)).GetVolumeId()
	r.snapshot(t, "taken", v)
	for _, tt := range []struct {
		name, of string
		want     codes.Code
	}{
		{"", v, codes.InvalidArgument}, {"s", "", codes.InvalidArgument},
		{"s", "nope", codes.NotFound}, {"taken", w, codes.AlreadyExists},
	} {
		_, err := r.CreateSnapshot(r.ctx, &csi.CreateSnapshotRequest{Name: tt.name, SourceVolumeId: tt.of})
		wantCode(t, err, tt.want)
	}
	_, err := r.DeleteSnapshot(r.ctx, &csi.DeleteSnapshotRequest{SnapshotId: "nope"})
	must(t, err)
}

func TestFeaturesCanBeSwitchedOff(t *testing.T) {
	features, err := server.ParseFeatures("-GET_SNAPSHOT,-CLONE_VOLUME,-node:SINGLE_NODE_MULTI_WRITER")
	must(t, err)
	r := start(t, func(o *server.Options) { o.Features = features })
	_, err = r.GetSnapshot(r.ctx, &csi.GetSnapshotRequest{SnapshotId: "x"})
	wantCode(t, err, codes.Unimplemented)
	req := ask("clone", mib)
	req.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: r.volume(t, ask("v", mib)).GetVolumeId()}}}
	_, err = r.CreateVolume(r.ctx, req)
	wantCode(t, err, codes.InvalidArgument)
	controller, err := r.ControllerGetCapabilities(r.ctx, &csi.ControllerGetCapabilitiesRequest{})
	must(t, err)
	claimed := map[csi.ControllerServiceCapability_RPC_Type]bool{}
	for _, c := range controller.GetCapabilities() {
		claimed[c.GetRpc().GetType()] = true
	}
	if claimed[csi.ControllerServiceCapability_RPC_GET_SNAPSHOT] || claimed[csi.ControllerServiceCapability_RPC_CLONE_VOLUME] ||
		!claimed[csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER] {
		t.Errorf("claimed: %v", claimed)
	}
	node, err := r.NodeGetCapabilities(r.ctx, &csi.NodeGetCapabilitiesRequest{})
	must(t, err)
	if got := len(node.GetCapabilities()); got != 2 {
		t.Errorf("%d node capabilities, want 2", got)
	}

	only, err := server.ParseFeatures("CONTROLLER_SERVICE, CREATE_DELETE_VOLUME")
	must(t, err)
	if len(only) != 2 {
		t.Errorf("only two were named, claimed are %v", only)
	}
	if _, err := server.ParseFeatures("-FLY"); err == nil {
		t.Error("an unknown capability was accepted")
	}
}
