// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

func volumeRequest(name string, mods ...func(*csi.CreateVolumeRequest)) *csi.CreateVolumeRequest {
	return apply(&csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: 10},
		VolumeCapabilities: []*csi.VolumeCapability{{}},
	}, mods)
}

// code is how a call ended.
func code(t *testing.T, err error) codes.Code {
	t.Helper()
	if err == nil {
		return codes.OK
	}
	failure := fault.Of(err)
	if failure == nil {
		t.Fatalf("the failure is a %T", err)
	}
	return failure.Code
}

func TestVolumesAreKeptByName(t *testing.T) {
	fromVolume := func(id string) func(*csi.CreateVolumeRequest) {
		return func(r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
				Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id},
			}}
		}
	}
	for _, row := range []struct {
		name    string
		request *csi.CreateVolumeRequest
		want    codes.Code
	}{
		{"the same again", volumeRequest("a"), codes.OK},
		{"secrets do not matter", volumeRequest("a", func(r *csi.CreateVolumeRequest) { r.Secrets = map[string]string{"k": "v"} }), codes.OK},
		{"larger", volumeRequest("a", func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 11 }), codes.AlreadyExists},
		{"smaller is satisfied", volumeRequest("a", func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 9 }), codes.OK},
		{"limit below", volumeRequest("a", func(r *csi.CreateVolumeRequest) { r.CapacityRange = &csi.CapacityRange{LimitBytes: 9} }), codes.AlreadyExists},
		{"other parameters", volumeRequest("a", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"k": "v"} }), codes.AlreadyExists},
		{"other source", volumeRequest("a", fromVolume(VolumeHandle("a"))), codes.AlreadyExists},
		{"clone", volumeRequest("b", fromVolume(VolumeHandle("a"))), codes.OK},
		{"clone of nothing", volumeRequest("c", fromVolume("none")), codes.NotFound},
		{"no name", volumeRequest(""), codes.InvalidArgument},
		{"no capabilities", volumeRequest("d", func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = nil }), codes.InvalidArgument},
	} {
		d := New(t).Driver
		if _, err := d.CreateVolume(t.Context(), volumeRequest("a")); err != nil {
			t.Fatal(err)
		}
		v, err := d.CreateVolume(t.Context(), row.request)
		if got := code(t, err); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
		if err == nil && !proto.Equal(v.GetContentSource(), row.request.GetVolumeContentSource()) {
			t.Errorf("%s: the answer's source is %v", row.name, v.GetContentSource())
		}
		for _, call := range d.Calls("CreateVolume") {
			if call.Code != codes.OK && call.Code != row.want {
				t.Errorf("%s: logged as %v", row.name, call.Code)
			}
		}
	}
}

func TestDeletionsAreIdempotent(t *testing.T) {
	d := New(t).Driver
	d.PutVolume("a", 1)
	d.PutSnapshot("s", VolumeHandle("a"), 1)
	if diff := cmp.Diff([]string{"snapshot s of handle-of-a", "volume a"}, d.Inventory()); diff != "" {
		t.Error(diff)
	}
	for range 2 {
		if err := d.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: VolumeHandle("a")}); err != nil {
			t.Error(err)
		}
		if err := d.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: SnapshotHandle("s")}); err != nil {
			t.Error(err)
		}
	}
	if got := d.Inventory(); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	if err := d.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{}); code(t, err) != codes.InvalidArgument {
		t.Errorf("no id: %v", err)
	}
}

func TestSnapshotsBecomeReady(t *testing.T) {
	d := New(t).Driver
	d.ReadyAfter = 2
	d.PutVolume("a", 7)
	request := &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: VolumeHandle("a")}
	first, err := d.CreateSnapshot(t.Context(), request)
	if err != nil || first.GetReadyToUse() || first.GetSizeBytes() != 7 {
		t.Fatalf("%v, %v", first, err)
	}
	list, err := d.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SnapshotId: first.GetSnapshotId()})
	if err != nil || len(list.GetEntries()) != 1 || list.GetEntries()[0].GetSnapshot().GetReadyToUse() {
		t.Fatalf("%v, %v", list, err)
	}
	got, err := d.GetSnapshot(t.Context(), &csi.GetSnapshotRequest{SnapshotId: first.GetSnapshotId()})
	if err != nil || !got.GetReadyToUse() {
		t.Errorf("%v, %v", got, err)
	}
	request.SourceVolumeId = d.PutVolume("b", 1)
	if _, err := d.CreateSnapshot(t.Context(), request); code(t, err) != codes.AlreadyExists {
		t.Errorf("the same name of another volume: %v", err)
	}
	if _, err := d.GetSnapshot(t.Context(), &csi.GetSnapshotRequest{SnapshotId: "none"}); code(t, err) != codes.NotFound {
		t.Errorf("none: %v", err)
	}
}

func TestListSnapshotsByPages(t *testing.T) {
	d := New(t).Driver
	for _, name := range []string{"a", "b", "c"} {
		d.PutSnapshot(name, "v", 1)
	}
	var names []string
	request := &csi.ListSnapshotsRequest{MaxEntries: 2}
	for {
		page, err := d.ListSnapshots(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.GetEntries() {
			names = append(names, e.GetSnapshot().GetSnapshotId())
		}
		if request.StartingToken = page.GetNextToken(); request.StartingToken == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"handle-of-a", "handle-of-b", "handle-of-c"}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := d.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{StartingToken: "x"}); code(t, err) != codes.Aborted {
		t.Errorf("a bad token: %v", err)
	}
}

func TestScriptOfTheDriver(t *testing.T) {
	d := New(t).Driver
	ran := false
	d.Next("CreateVolume",
		Reply{Code: codes.Unavailable, Text: "later", Times: 2},
		Reply{Code: codes.DeadlineExceeded, Done: true, Meanwhile: func() { ran = true }},
		Reply{Volume: func(*csi.Volume) *csi.Volume { return nil }},
		Reply{Volume: func(v *csi.Volume) *csi.Volume { v.VolumeId = ""; return v }},
		Reply{Volume: func(v *csi.Volume) *csi.Volume { v.CapacityBytes = 1; return v }},
	)
	var ends []codes.Code
	held := []int{}
	for range 7 {
		_, err := d.CreateVolume(t.Context(), volumeRequest("a"))
		ends = append(ends, code(t, err))
		held = append(held, len(d.Inventory()))
	}
	want := []codes.Code{
		codes.Unavailable, codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Internal, codes.OK, codes.OK,
	}
	if diff := cmp.Diff(want, ends); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{0, 0, 1, 1, 1, 1, 1}, held); diff != "" || !ran {
		t.Error(diff, ran)
	}
	if v, _ := d.CreateVolume(t.Context(), volumeRequest("a")); v.GetCapacityBytes() != 10 {
		t.Errorf("an edited answer changed what is stored: %v", v)
	}
}

func TestDriverInsistsOnSecrets(t *testing.T) {
	d := New(t).Driver
	d.Secrets = map[string]string{"key": "secret"}
	if _, err := d.CreateVolume(t.Context(), volumeRequest("a")); code(t, err) != codes.Unauthenticated {
		t.Errorf("without: %v", err)
	}
	_, err := d.CreateVolume(t.Context(), volumeRequest("a", func(r *csi.CreateVolumeRequest) { r.Secrets = d.Secrets }))
	if err != nil {
		t.Errorf("with: %v", err)
	}
	if _, err := d.GetCapacity(t.Context(), &csi.GetCapacityRequest{}); err != nil {
		t.Errorf("GetCapacity takes no secrets: %v", err)
	}
}

func TestDriverPlacesVolumes(t *testing.T) {
	d := New(t).Driver
	in := func(zone string) *csi.Topology { return &csi.Topology{Segments: map[string]string{"zone": zone}} }
	both := &csi.TopologyRequirement{Requisite: []*csi.Topology{in("a"), in("b")}, Preferred: []*csi.Topology{in("b"), in("a")}}
	v, err := d.CreateVolume(t.Context(), volumeRequest("x", func(r *csi.CreateVolumeRequest) { r.AccessibilityRequirements = both }))
	if err != nil || len(v.GetAccessibleTopology()) != 1 || !proto.Equal(v.GetAccessibleTopology()[0], in("b")) {
		t.Errorf("%v, %v", v, err)
	}
	d.Topology = func(*csi.CreateVolumeRequest) []*csi.Topology { return []*csi.Topology{in("c")} }
	d.Omit = Omissions{ContentSource: true, Size: true}
	v, err = d.CreateVolume(t.Context(), volumeRequest("y"))
	if err != nil || !proto.Equal(v.GetAccessibleTopology()[0], in("c")) || v.GetCapacityBytes() != 0 {
		t.Errorf("%v, %v", v, err)
	}
}
