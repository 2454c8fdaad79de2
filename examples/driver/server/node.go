// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
)

// NodeGetInfo tells the id and the segment of the node that this process is on.
func (s *Server) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	resp := &csi.NodeGetInfoResponse{NodeId: s.options.Node}
	if s.hasTopology() {
		resp.AccessibleTopology = &csi.Topology{Segments: s.options.Topology[s.options.Node]}
	}
	return resp, nil
}

// NodeStageVolume makes the volume appear at the staging path, once per node.
func (s *Server) NodeStageVolume(_ context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if req.GetStagingTargetPath() == "" && req.GetVolumeId() != "" {
		return nil, invalid("staging_target_path is missing")
	}
	defer s.turns.take(req.GetVolumeId())()
	v, err := s.usable(req.GetVolumeId(), req.GetVolumeCapability())
	if err != nil {
		return nil, err
	}
	if err := s.appear(v, backend.Use{Path: oneName(req.GetStagingTargetPath()), Staging: true}); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume undoes NodeStageVolume. The directory is the caller's.
func (s *Server) NodeUnstageVolume(_ context.Context, req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, invalid("volume_id is missing")
	}
	if req.GetStagingTargetPath() == "" {
		return nil, invalid("staging_target_path is missing")
	}
	if err := s.vanish(req.GetVolumeId(), oneName(req.GetStagingTargetPath()), mount.Unmount); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume makes the volume appear at the path of one workload.
func (s *Server) NodePublishVolume(_ context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if req.GetTargetPath() == "" && req.GetVolumeId() != "" {
		return nil, invalid("target_path is missing")
	}
	defer s.turns.take(req.GetVolumeId())()
	v, err := s.usable(req.GetVolumeId(), req.GetVolumeCapability())
	if err != nil {
		return nil, err
	}
	if s.hasNode(csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME) && !isStaged(v, req.GetStagingTargetPath()) {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %q is not staged at %q", v.ID, req.GetStagingTargetPath())
	}
	mode := req.GetVolumeCapability().GetAccessMode().GetMode()
	use := backend.Use{
		Path: oneName(req.GetTargetPath()),
		ReadOnly: req.GetReadonly() || slices.Contains(req.GetVolumeCapability().GetMount().GetMountFlags(), "ro") ||
			mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY ||
			mode == csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
		Exclusive: mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
	}
	if err := s.appear(v, use); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func isStaged(v backend.Volume, path string) bool {
	return path != "" && slices.ContainsFunc(v.Uses, func(u backend.Use) bool {
		return u.Staging && u.Path == oneName(path)
	})
}

// usable finds a volume and refuses a capability that it was not made for.
func (s *Server) usable(id string, c *csi.VolumeCapability) (backend.Volume, error) {
	if id == "" {
		return backend.Volume{}, invalid("volume_id is missing")
	}
	block, err := s.checkCapability(c)
	if err != nil {
		return backend.Volume{}, err
	}
	v, err := s.find(id)
	if err == nil && v.Block != block {
		err = invalid("volume %q has the other access type", id)
	}
	return v, err
}

// NodeUnpublishVolume undoes NodePublishVolume. What is at the path of it goes even
// if the volume is not known any more, because nobody else would remove it.
func (s *Server) NodeUnpublishVolume(_ context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, invalid("volume_id is missing")
	}
	if req.GetTargetPath() == "" {
		return nil, invalid("target_path is missing")
	}
	if err := s.vanish(req.GetVolumeId(), oneName(req.GetTargetPath()), mount.Detach); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
