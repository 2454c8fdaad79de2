// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
)

// CreateSnapshot copies a volume as it is now.
func (s *Server) CreateSnapshot(_ context.Context, req *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if err := checkName(req.GetName()); err != nil {
		return nil, err
	}
	if req.GetSourceVolumeId() == "" {
		return nil, invalid("source_volume_id is missing")
	}
	snap, err := s.options.Backend.CreateSnapshot(backend.SnapshotRequest{
		Name: req.GetName(), Volume: req.GetSourceVolumeId(), Parameters: req.GetParameters(),
	})
	if err != nil {
		return nil, refusal(err)
	}
	return &csi.CreateSnapshotResponse{Snapshot: s.snapshot(snap)}, nil
}

func (s *Server) snapshot(snap backend.Snapshot) *csi.Snapshot {
	// Both are asked, so that the script counts every look.
	scripted := s.options.Script.IsReady(snap.Name, snap.ID, snap.Created)
	return &csi.Snapshot{
		SnapshotId:     snap.ID,
		SourceVolumeId: snap.Volume,
		SizeBytes:      snap.Size,
		CreationTime:   timestamppb.New(snap.Created),
		ReadyToUse:     scripted && s.options.Backend.IsReady(snap),
	}
}

// DeleteSnapshot removes a snapshot; an id that is not known was deleted before.
func (s *Server) DeleteSnapshot(_ context.Context, req *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if req.GetSnapshotId() == "" {
		return nil, invalid("snapshot_id is missing")
	}
	if err := s.options.Backend.DeleteSnapshot(req.GetSnapshotId()); err != nil {
		return nil, refusal(err)
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

// GetSnapshot reports one snapshot.
func (s *Server) GetSnapshot(_ context.Context, req *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	if req.GetSnapshotId() == "" {
		return nil, invalid("snapshot_id is missing")
	}
	snap, ok := s.options.Backend.Snapshot(req.GetSnapshotId())
	if !ok {
		return nil, status.Errorf(codes.NotFound, "snapshot %q", req.GetSnapshotId())
	}
	return &csi.GetSnapshotResponse{Snapshot: s.snapshot(snap)}, nil
}

// ListSnapshots reports snapshots, page by page. What does not exist is an
// empty list, not an error.
func (s *Server) ListSnapshots(_ context.Context, req *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	all := s.options.Backend.Snapshots()
	if id := req.GetSnapshotId(); id != "" {
		all = slices.DeleteFunc(all, func(snap backend.Snapshot) bool { return snap.ID != id })
	}
	if id := req.GetSourceVolumeId(); id != "" {
		all = slices.DeleteFunc(all, func(snap backend.Snapshot) bool { return snap.Volume != id })
	}
	p, err := cut(all, func(snap backend.Snapshot) string { return snap.ID }, req.GetStartingToken(), req.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	resp := &csi.ListSnapshotsResponse{NextToken: p.next}
	for _, snap := range p.entries {
		resp.Entries = append(resp.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: s.snapshot(snap)})
	}
	return resp, nil
}
