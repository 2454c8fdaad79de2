// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

type storedSnapshot struct {
	name string
	// waits is how many answers still say that it is not ready.
	waits  int
	answer *csi.Snapshot
}

// look is an answer about the snapshot; each one brings it nearer to ready.
func (s *storedSnapshot) look() *csi.Snapshot {
	if s.waits > 0 {
		s.waits--
	} else {
		s.answer.ReadyToUse = true
	}
	return proto.CloneOf(s.answer)
}

// SnapshotHandle is the handle of the snapshot with a name.
func SnapshotHandle(name string) string { return "handle-of-" + name }

// CreateSnapshot has the same meaning as in driver.Conn.
func (d *Driver) CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.Snapshot, error) {
	var answer *csi.Snapshot
	in := invocation{
		op: fault.CreateSnapshot, request: request, subject: request.GetName(), secrets: request.GetSecrets(), takesSecrets: true,
	}
	err := d.do(ctx, in, func(reply *Reply) error {
		stored, err := d.makeSnapshot(request)
		if err != nil {
			return err
		}
		answer = stored.look()
		if reply.Snapshot != nil && reply.Code == codes.OK {
			answer = reply.Snapshot(answer)
		}
		switch {
		case answer == nil:
			return fault.Malformed(fault.CreateSnapshot, "the driver answered OK without a snapshot")
		case answer.GetSnapshotId() == "":
			return fault.Malformed(fault.CreateSnapshot, "the driver answered OK with a snapshot without snapshot_id")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (d *Driver) makeSnapshot(request *csi.CreateSnapshotRequest) (*storedSnapshot, error) {
	if request.GetName() == "" || request.GetSourceVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "a snapshot needs a name and a source")
	}
	for _, s := range d.snapshots {
		if s.name != request.GetName() {
			continue
		}
		if s.answer.GetSourceVolumeId() != request.GetSourceVolumeId() {
			return nil, status.Errorf(codes.AlreadyExists, "snapshot %s exists with another source", request.GetName())
		}
		return s, nil
	}
	source := d.volumes[request.GetSourceVolumeId()]
	if source == nil {
		return nil, status.Errorf(codes.NotFound, "volume %s does not exist", request.GetSourceVolumeId())
	}
	s := &storedSnapshot{name: request.GetName(), waits: d.ReadyAfter, answer: &csi.Snapshot{
		SnapshotId: SnapshotHandle(request.GetName()), SourceVolumeId: request.GetSourceVolumeId(),
		SizeBytes: source.answer.GetCapacityBytes(), CreationTime: timestamppb.New(d.clock.Now()),
	}}
	if d.Omit.Size {
		s.answer.SizeBytes = 0
	}
	d.snapshots[s.answer.GetSnapshotId()] = s
	return s, nil
}

// DeleteSnapshot has the same meaning as in driver.Conn.
func (d *Driver) DeleteSnapshot(ctx context.Context, request *csi.DeleteSnapshotRequest) error {
	in := invocation{
		op: fault.DeleteSnapshot, request: request, subject: request.GetSnapshotId(), secrets: request.GetSecrets(), takesSecrets: true,
	}
	return d.do(ctx, in, func(*Reply) error {
		if request.GetSnapshotId() == "" {
			return status.Error(codes.InvalidArgument, "a snapshot id is needed")
		}
		delete(d.snapshots, request.GetSnapshotId())
		return nil
	})
}

// GetSnapshot has the same meaning as in driver.Conn.
func (d *Driver) GetSnapshot(ctx context.Context, request *csi.GetSnapshotRequest) (*csi.Snapshot, error) {
	var answer *csi.Snapshot
	in := invocation{
		op: fault.GetSnapshot, request: request, subject: request.GetSnapshotId(), secrets: request.GetSecrets(), takesSecrets: true,
	}
	err := d.do(ctx, in, func(reply *Reply) error {
		if !d.Capabilities.Has(csi.ControllerServiceCapability_RPC_GET_SNAPSHOT) {
			return status.Error(codes.Unimplemented, "unknown method GetSnapshot")
		}
		stored := d.snapshots[request.GetSnapshotId()]
		if stored == nil {
			return status.Errorf(codes.NotFound, "snapshot %s does not exist", request.GetSnapshotId())
		}
		answer = stored.look()
		if reply.Snapshot != nil {
			answer = reply.Snapshot(answer)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// ListSnapshots has the same meaning as in driver.Conn.
func (d *Driver) ListSnapshots(ctx context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	var answer *csi.ListSnapshotsResponse
	in := invocation{
		op: fault.ListSnapshots, request: request, subject: request.GetSnapshotId(), secrets: request.GetSecrets(), takesSecrets: true,
	}
	err := d.do(ctx, in, func(reply *Reply) error {
		if !d.Capabilities.Has(csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS) {
			return status.Error(codes.Unimplemented, "unknown method ListSnapshots")
		}
		var err error
		answer, err = d.page(request, reply)
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (d *Driver) page(request *csi.ListSnapshotsRequest, reply *Reply) (*csi.ListSnapshotsResponse, error) {
	all := d.matching(request, reply)
	start, err := startOf(request.GetStartingToken(), len(all))
	if err != nil {
		return nil, err
	}
	end, next := len(all), ""
	if most := int(request.GetMaxEntries()); most > 0 && start+most < end {
		end = start + most
		next = strconv.Itoa(end)
	}
	return &csi.ListSnapshotsResponse{Entries: all[start:end], NextToken: next}, nil
}

func (d *Driver) matching(request *csi.ListSnapshotsRequest, reply *Reply) []*csi.ListSnapshotsResponse_Entry {
	var all []*csi.ListSnapshotsResponse_Entry
	for _, id := range slices.Sorted(maps.Keys(d.snapshots)) {
		s := d.snapshots[id]
		wantID, wantSource := request.GetSnapshotId(), request.GetSourceVolumeId()
		if (wantID != "" && wantID != id) || (wantSource != "" && wantSource != s.answer.GetSourceVolumeId()) {
			continue
		}
		answer := s.look()
		if reply.Snapshot != nil {
			answer = reply.Snapshot(answer)
		}
		if answer != nil {
			all = append(all, &csi.ListSnapshotsResponse_Entry{Snapshot: answer})
		}
	}
	return all
}

func startOf(token string, length int) (int, error) {
	if token == "" {
		return 0, nil
	}
	start, err := strconv.Atoi(token)
	if err != nil || start < 0 || start > length {
		return 0, status.Errorf(codes.Aborted, "starting token %q is not valid", token)
	}
	return start, nil
}

// PutSnapshot gives the driver a snapshot that it has from elsewhere, ready to use, and returns its handle.
func (d *Driver) PutSnapshot(name, sourceHandle string, size int64) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &storedSnapshot{name: name, answer: &csi.Snapshot{
		SnapshotId: SnapshotHandle(name), SourceVolumeId: sourceHandle, SizeBytes: size, ReadyToUse: true,
		CreationTime: timestamppb.New(d.clock.Now()),
	}}
	d.snapshots[s.answer.GetSnapshotId()] = s
	return s.answer.GetSnapshotId()
}
