// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
	"github.com/csi-tandem/csi-tandem/examples/driver/loop"
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
	v, err := s.usable(req.GetVolumeId(), req.GetVolumeCapability())
	if err != nil {
		return nil, err
	}
	path := filepath.Clean(req.GetStagingTargetPath())
	if err := s.options.Backend.BeginUse(v.ID, backend.Use{Path: path, Staging: true}); err != nil {
		return nil, refusal(err)
	}
	// For block access, and where nothing can be mounted, publishing goes to
	// the data directly: the staging directory belongs to the caller.
	if v.Block || s.options.Mount == mount.Link {
		return &csi.NodeStageVolumeResponse{}, nil
	}
	if err := s.attach(v, backend.Use{Path: path}); err != nil {
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
	path := filepath.Clean(req.GetStagingTargetPath())
	if err := mount.Unmount(path); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := s.release(req.GetVolumeId(), path); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume makes the volume appear at the path of one workload.
func (s *Server) NodePublishVolume(_ context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if req.GetTargetPath() == "" && req.GetVolumeId() != "" {
		return nil, invalid("target_path is missing")
	}
	v, err := s.usable(req.GetVolumeId(), req.GetVolumeCapability())
	if err != nil {
		return nil, err
	}
	if s.hasNode(csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME) && !isStaged(v, req.GetStagingTargetPath()) {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %q is not staged at %q", v.ID, req.GetStagingTargetPath())
	}
	mode := req.GetVolumeCapability().GetAccessMode().GetMode()
	use := backend.Use{
		Path: filepath.Clean(req.GetTargetPath()),
		ReadOnly: req.GetReadonly() || slices.Contains(req.GetVolumeCapability().GetMount().GetMountFlags(), "ro") ||
			mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY ||
			mode == csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
		Exclusive: mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
	}
	if err := s.options.Backend.BeginUse(v.ID, use); err != nil {
		return nil, refusal(err)
	}
	if err := s.attach(v, use); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// attach leaves the use on record when it fails: something may be mounted,
// and the caller is bound to try again or to undo.
func (s *Server) attach(v backend.Volume, use backend.Use) error {
	source, err := s.options.Backend.DataPath(v.ID)
	if err != nil {
		return refusal(err)
	}
	if v.Block && s.options.Devices {
		// The mount of a device says nothing about what may be written to it.
		source, err = loop.Attach(source, access(use))
	}
	if err == nil {
		err = s.options.Mount.Attach(mount.Target{Source: source, Path: use.Path, ReadOnly: use.ReadOnly})
	}
	if errors.Is(err, fs.ErrNotExist) {
		return invalid("%s", err)
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

func access(use backend.Use) loop.Access {
	if use.ReadOnly {
		return loop.ReadOnly
	}
	return loop.ReadWrite
}

// release ends a use, and frees the devices that no other use needs. A kill
// in between leaves a device, which the repeated call frees.
func (s *Server) release(id, path string) error {
	v, ok := s.options.Backend.Volume(id)
	if ok && v.Block && s.options.Devices {
		needed := map[loop.Access]bool{}
		for _, u := range v.Uses {
			if !u.Staging && u.Path != path {
				needed[access(u)] = true
			}
		}
		data, err := s.options.Backend.DataPath(id)
		for _, a := range []loop.Access{loop.ReadWrite, loop.ReadOnly} {
			if err == nil && !needed[a] {
				err = loop.Detach(data, a)
			}
		}
		if err != nil {
			return status.Error(codes.Internal, err.Error())
		}
	}
	if err := s.options.Backend.EndUse(id, path); err != nil {
		return refusal(err)
	}
	return nil
}

func isStaged(v backend.Volume, path string) bool {
	return path != "" && slices.ContainsFunc(v.Uses, func(u backend.Use) bool {
		return u.Staging && u.Path == filepath.Clean(path)
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

// NodeUnpublishVolume undoes NodePublishVolume. What is at the path goes even
// if the volume is not known any more, because nobody else would remove it.
func (s *Server) NodeUnpublishVolume(_ context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, invalid("volume_id is missing")
	}
	if req.GetTargetPath() == "" {
		return nil, invalid("target_path is missing")
	}
	path := filepath.Clean(req.GetTargetPath())
	if err := mount.Detach(path); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := s.release(req.GetVolumeId(), path); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
