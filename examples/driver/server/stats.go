// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
)

// NodeGetVolumeStats adds up the files of a volume. Nothing here enforces the
// size of a volume, so more can be used than there is; free is then zero.
func (s *Server) NodeGetVolumeStats(_ context.Context, req *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if req.GetVolumeId() != "" && req.GetVolumePath() == "" {
		return nil, invalid("volume_path is missing")
	}
	v, err := s.find(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	path := oneName(req.GetVolumePath())
	if !slices.ContainsFunc(v.Uses, func(u backend.Use) bool { return u.Path == path }) {
		return nil, status.Errorf(codes.NotFound, "volume %q is not at %s", v.ID, path)
	}
	if v.Block {
		return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: v.Size}}}, nil
	}
	used, err := s.options.Backend.Usage(v.ID)
	if err != nil {
		return nil, refusal(err)
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: v.Size, Used: used.Bytes, Available: max(0, v.Size-used.Bytes)},
		{Unit: csi.VolumeUsage_INODES, Used: used.Inodes},
	}}, nil
}
