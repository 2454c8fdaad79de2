// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
	"github.com/csi-tandem/csi-tandem/examples/driver/server"
)

func plain(*server.Options) {}

func zone(z string) *csi.Topology { return &csi.Topology{Segments: map[string]string{"zone": z}} }

func TestContentSourceIsEchoedOnRepeats(t *testing.T) {
	r := start(t, plain)
	source := r.volume(t, ask("source", mib))
	snap := r.snapshot(t, "snap", source.GetVolumeId())
	for name, from := range map[string]*csi.VolumeContentSource{
		"restored": {Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: snap.GetSnapshotId()}}},
		"cloned": {Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: source.GetVolumeId()}}},
	} {
		req := ask(name, mib)
		req.VolumeContentSource = from
		first := r.volume(t, req)
		if diff := cmp.Diff(from, first.GetContentSource(), protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(first, r.volume(t, req), protocmp.Transform()); diff != "" {
			t.Errorf("the repeat differs: %s", diff)
		}
	}
}

func TestTopologyReachesTheCaller(t *testing.T) {
	r := start(t, plain)
	req := ask("v", mib)
	req.AccessibilityRequirements = &csi.TopologyRequirement{
		Requisite: []*csi.Topology{zone("a"), zone("b")}, Preferred: []*csi.Topology{zone("b"), zone("a")},
	}
	want := []*csi.Topology{zone("b")}
	if diff := cmp.Diff(want, r.volume(t, req).GetAccessibleTopology(), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	req = ask("nowhere", mib)
	req.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: []*csi.Topology{zone("c")}}
	_, err := r.CreateVolume(r.ctx, req)
	wantCode(t, err, codes.ResourceExhausted)
	info, err := r.NodeGetInfo(r.ctx, &csi.NodeGetInfoRequest{})
	must(t, err)
	if diff := cmp.Diff(zone("a"), info.GetAccessibleTopology(), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	room, err := r.GetCapacity(r.ctx, &csi.GetCapacityRequest{AccessibleTopology: zone("b")})
	must(t, err)
	if room.GetAvailableCapacity() != 49*mib || room.GetMaximumVolumeSize().GetValue() != 49*mib {
		t.Errorf("zone b has %v", room)
	}
}

func TestWithoutTopology(t *testing.T) {
	r := start(t, func(o *server.Options) { o.Topology = nil })
	caps, err := r.GetPluginCapabilities(r.ctx, &csi.GetPluginCapabilitiesRequest{})
	must(t, err)
	if got := len(caps.GetCapabilities()); got != 1 {
		t.Errorf("%d plugin capabilities, want only the controller service", got)
	}
	req := ask("v", mib)
	req.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: []*csi.Topology{zone("c")}}
	if got := r.volume(t, req).GetAccessibleTopology(); got != nil {
		t.Errorf("topology %v without a table", got)
	}
	_, err = server.New(server.Options{Node: "x", Topology: map[string]backend.Segment{"node1": {"zone": "a"}}})
	if err == nil || !strings.Contains(err.Error(), "node1") {
		t.Errorf("a node outside of the table: %v", err)
	}
}

func TestCreateVolumeRefuses(t *testing.T) {
	r := start(t, plain)
	r.volume(t, ask("taken", mib))
	block := &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Block{}, AccessMode: filesystem.GetAccessMode()}
	for _, tt := range []struct {
		name string
		edit func(*csi.CreateVolumeRequest)
		want codes.Code
	}{
		{"no name", func(q *csi.CreateVolumeRequest) { q.Name = "" }, codes.InvalidArgument},
		{"long name", func(q *csi.CreateVolumeRequest) { q.Name = strings.Repeat("x", 129) }, codes.InvalidArgument},
		{"no capability", func(q *csi.CreateVolumeRequest) { q.VolumeCapabilities = nil }, codes.InvalidArgument},
		{"no access type", func(q *csi.CreateVolumeRequest) {
			q.VolumeCapabilities = []*csi.VolumeCapability{{AccessMode: filesystem.GetAccessMode()}}
		}, codes.InvalidArgument},
		{"no access mode", func(q *csi.CreateVolumeRequest) {
			q.VolumeCapabilities = []*csi.VolumeCapability{{AccessType: filesystem.GetAccessType()}}
		}, codes.InvalidArgument},
		{"both accesses", func(q *csi.CreateVolumeRequest) {
			q.VolumeCapabilities = append(q.VolumeCapabilities, block)
		}, codes.InvalidArgument},
		{"empty source", func(q *csi.CreateVolumeRequest) { q.VolumeContentSource = &csi.VolumeContentSource{} }, codes.InvalidArgument},
		{"unknown source", func(q *csi.CreateVolumeRequest) {
			q.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
				Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: "nope"}}}
		}, codes.NotFound},
		{"unknown setting", func(q *csi.CreateVolumeRequest) { q.MutableParameters = map[string]string{"x": "y"} }, codes.InvalidArgument},
		{"bad range", func(q *csi.CreateVolumeRequest) { q.CapacityRange.LimitBytes = 1 }, codes.OutOfRange},
		{"no room", func(q *csi.CreateVolumeRequest) { q.CapacityRange.RequiredBytes = 101 * mib }, codes.ResourceExhausted},
		{"name taken", func(q *csi.CreateVolumeRequest) { q.Name, q.CapacityRange.RequiredBytes = "taken", 2*mib }, codes.AlreadyExists},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := ask("v", mib)
			tt.edit(req)
			_, err := r.CreateVolume(r.ctx, req)
			wantCode(t, err, tt.want)
		})
	}
	if got := len(r.inventory(t).Volumes); got != 1 {
		t.Errorf("%d volumes, want 1", got)
	}
}

func TestPagesStayGoodWhenEntriesComeAndGo(t *testing.T) {
	r := start(t, plain)
	for i := range 5 {
		r.volume(t, ask(fmt.Sprint("v", i), mib))
	}
	seen := map[string]bool{}
	token := ""
	for {
		page, err := r.ListVolumes(r.ctx, &csi.ListVolumesRequest{MaxEntries: 2, StartingToken: token})
		must(t, err)
		if len(page.GetEntries()) > 2 {
			t.Fatalf("%d entries on a page", len(page.GetEntries()))
		}
		for _, e := range page.GetEntries() {
			id := e.GetVolume().GetVolumeId()
			if seen[id] {
				t.Errorf("%s is listed twice", id)
			}
			seen[id] = true
			// The token names this volume, if it was the last of the page.
			_, err := r.DeleteVolume(r.ctx, &csi.DeleteVolumeRequest{VolumeId: id})
			must(t, err)
		}
		if token = page.GetNextToken(); token == "" {
			break
		}
	}
	if len(seen) != 5 {
		t.Errorf("%d volumes were listed, want 5", len(seen))
	}
	_, err := r.ListVolumes(r.ctx, &csi.ListVolumesRequest{StartingToken: "garbage"})
	wantCode(t, err, codes.Aborted)
	_, err = r.ListVolumes(r.ctx, &csi.ListVolumesRequest{MaxEntries: -1})
	wantCode(t, err, codes.InvalidArgument)
}

func TestModifyVolume(t *testing.T) {
	r := start(t, plain)
	req := ask("v", mib)
	req.MutableParameters = map[string]string{"tier": "silver"}
	id := r.volume(t, req).GetVolumeId()
	for _, tt := range []struct {
		id, key, value string
		want           codes.Code
	}{
		{id, "iops", "100", codes.OK},
		{id, "iops", "many", codes.InvalidArgument},
		{id, "tier", "lead", codes.InvalidArgument},
		{"nope", "iops", "100", codes.NotFound},
		{"", "iops", "100", codes.InvalidArgument},
	} {
		_, err := r.ControllerModifyVolume(r.ctx, &csi.ControllerModifyVolumeRequest{
			VolumeId: tt.id, MutableParameters: map[string]string{tt.key: tt.value},
		})
		wantCode(t, err, tt.want)
	}
	want := map[string]string{"tier": "silver", "iops": "100"}
	if diff := cmp.Diff(want, r.inventory(t).Volumes[0].Mutable); diff != "" {
		t.Error(diff)
	}
	// Later settings do not make the original request another one.
	if got := r.volume(t, req).GetVolumeId(); got != id {
		t.Errorf("found %s, want %s", got, id)
	}
}
