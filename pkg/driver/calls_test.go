// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// call is one method as the tables below use it.
type call struct {
	op      fault.Operation
	request proto.Message
	do      func(context.Context, *driver.Conn) (any, error)
}

func calls() []call {
	createVolume := &csi.CreateVolumeRequest{Name: "pvc-1", Secrets: map[string]string{"key": "secret"}}
	deleteVolume := &csi.DeleteVolumeRequest{VolumeId: "v"}
	createSnapshot := &csi.CreateSnapshotRequest{Name: "snapshot-1", SourceVolumeId: "v"}
	deleteSnapshot := &csi.DeleteSnapshotRequest{SnapshotId: "s"}
	getSnapshot := &csi.GetSnapshotRequest{SnapshotId: "s"}
	listSnapshots := &csi.ListSnapshotsRequest{SnapshotId: "s"}
	getCapacity := &csi.GetCapacityRequest{Parameters: map[string]string{"a": "b"}}
	return []call{
		{fault.CreateVolume, createVolume, func(ctx context.Context, c *driver.Conn) (any, error) { return c.CreateVolume(ctx, createVolume) }},
		{fault.DeleteVolume, deleteVolume, func(ctx context.Context, c *driver.Conn) (any, error) { return nil, c.DeleteVolume(ctx, deleteVolume) }},
		{fault.CreateSnapshot, createSnapshot, func(ctx context.Context, c *driver.Conn) (any, error) {
			return c.CreateSnapshot(ctx, createSnapshot)
		}},
		{fault.DeleteSnapshot, deleteSnapshot, func(ctx context.Context, c *driver.Conn) (any, error) {
			return nil, c.DeleteSnapshot(ctx, deleteSnapshot)
		}},
		{fault.GetSnapshot, getSnapshot, func(ctx context.Context, c *driver.Conn) (any, error) { return c.GetSnapshot(ctx, getSnapshot) }},
		{fault.ListSnapshots, listSnapshots, func(ctx context.Context, c *driver.Conn) (any, error) { return c.ListSnapshots(ctx, listSnapshots) }},
		{fault.GetCapacity, getCapacity, func(ctx context.Context, c *driver.Conn) (any, error) { return c.GetCapacity(ctx, getCapacity) }},
		{fault.Identify, &csi.NodeGetInfoRequest{}, func(ctx context.Context, c *driver.Conn) (any, error) { return c.NodeGetInfo(ctx) }},
	}
}

func TestEveryCallArrivesAsItWasMade(t *testing.T) {
	s := serve(t)
	s.volume, s.snapshot = &csi.Volume{VolumeId: "v", CapacityBytes: 5}, &csi.Snapshot{SnapshotId: "s"}
	conn := connect(t, s, driver.Options{})
	want := map[fault.Operation]proto.Message{
		fault.CreateVolume: s.volume, fault.CreateSnapshot: s.snapshot, fault.GetSnapshot: s.snapshot,
		fault.ListSnapshots: &csi.ListSnapshotsResponse{NextToken: "more"},
		fault.GetCapacity:   &csi.GetCapacityResponse{AvailableCapacity: 42},
		fault.Identify:      &csi.NodeGetInfoResponse{NodeId: "node-1"},
	}
	for _, c := range calls() {
		answer, err := c.do(t.Context(), conn)
		if err != nil {
			t.Errorf("%s: %v", c.op, err)
			continue
		}
		if got, ok := s.request().(proto.Message); !ok || !proto.Equal(got, c.request) {
			t.Errorf("%s: the driver saw %v", c.op, got)
		}
		if got, _ := answer.(proto.Message); want[c.op] != nil && !proto.Equal(got, want[c.op]) {
			t.Errorf("%s: the answer is %v", c.op, got)
		}
	}
}

func TestEveryFailureHasItsClass(t *testing.T) {
	s := serve(t)
	conn := connect(t, s, driver.Options{})
	for _, code := range []codes.Code{codes.Internal, codes.ResourceExhausted, codes.InvalidArgument, codes.NotFound} {
		s.failing(code, "because")
		for _, c := range calls() {
			_, err := c.do(t.Context(), conn)
			failure := fault.Of(err)
			if failure == nil || failure.Op != c.op || failure.Code != code || failure.Text != "because" ||
				failure.Class != fault.Classify(c.op, code) {
				t.Errorf("%s, %v: %#v", c.op, code, failure)
			}
		}
	}
}

func TestEveryCallHasItsDeadline(t *testing.T) {
	s := serve(t)
	s.hang = true
	conn := connect(t, s, driver.Options{Timeout: 20 * time.Millisecond})
	for _, c := range calls() {
		_, err := c.do(t.Context(), conn)
		if failure := fault.Of(err); failure == nil || failure.Code != codes.DeadlineExceeded || failure.Class != fault.Uncertain {
			t.Errorf("%s: %v", c.op, err)
		}
	}
}

func TestACancelledCallIsUncertain(t *testing.T) {
	s := serve(t)
	s.hang = true
	conn := connect(t, s, driver.Options{})
	for _, c := range calls() {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		_, err := c.do(ctx, conn)
		if failure := fault.Of(err); failure == nil || failure.Code != codes.Canceled || failure.Class != fault.Uncertain {
			t.Errorf("%s: %v", c.op, err)
		}
	}
}

// OK without what was asked for breaks the CSI spec; whether something was made is not known.
func TestAnswersThatLackTheirObject(t *testing.T) {
	s := serve(t)
	conn := connect(t, s, driver.Options{})
	for name, row := range map[string]struct {
		volume   *csi.Volume
		snapshot *csi.Snapshot
	}{
		"no object": {}, "no id": {&csi.Volume{CapacityBytes: 1}, &csi.Snapshot{SourceVolumeId: "v"}},
	} {
		s.change(func() { s.volume, s.snapshot = row.volume, row.snapshot })
		volume, err := conn.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a"})
		if failure := fault.Of(err); volume != nil || failure == nil || failure.Class != fault.Uncertain || failure.Op != fault.CreateVolume {
			t.Errorf("%s: volume %v, %v", name, volume, err)
		}
		snapshot, err := conn.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "a"})
		if failure := fault.Of(err); snapshot != nil || failure == nil || failure.Class != fault.Uncertain || failure.Op != fault.CreateSnapshot {
			t.Errorf("%s: snapshot %v, %v", name, snapshot, err)
		}
	}
	s.change(func() { s.snapshot = nil })
	if snapshot, err := conn.GetSnapshot(t.Context(), &csi.GetSnapshotRequest{SnapshotId: "s"}); snapshot != nil || err != nil {
		t.Errorf("a get without snapshot: %v, %v", snapshot, err)
	}
}

// A nil *fault.Error in an error interface would make every success a failure.
func TestSuccessIsNil(t *testing.T) {
	s := serve(t)
	conn := connect(t, s, driver.Options{})
	if err := conn.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "v"}); err != nil || errors.Unwrap(err) != nil {
		t.Errorf("got %#v", err)
	}
}
