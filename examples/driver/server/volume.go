// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
)

// maximumName is the limit of the CSI specification for string fields.
const maximumName = 128

// CreateVolume makes a volume: empty, from a snapshot, or from a volume.
func (s *Server) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := checkName(req.GetName()); err != nil {
		return nil, err
	}
	block, err := s.checkCapabilities(req.GetVolumeCapabilities())
	if err != nil {
		return nil, err
	}
	source, err := s.source(req.GetVolumeContentSource())
	if err != nil {
		return nil, err
	}
	mutable := req.GetMutableParameters()
	if len(mutable) > 0 && !s.hasController(csi.ControllerServiceCapability_RPC_MODIFY_VOLUME) {
		return nil, invalid("mutable_parameters are not supported")
	}
	if err := checkMutable(mutable); err != nil {
		return nil, err
	}
	v, err := s.options.Backend.CreateVolume(backend.VolumeRequest{
		Name:       req.GetName(),
		Required:   req.GetCapacityRange().GetRequiredBytes(),
		Limit:      req.GetCapacityRange().GetLimitBytes(),
		Block:      block,
		Parameters: req.GetParameters(),
		Mutable:    mutable,
		Source:     source,
		Requisite:  s.segments(req.GetAccessibilityRequirements().GetRequisite()),
		Preferred:  s.segments(req.GetAccessibilityRequirements().GetPreferred()),
	})
	if err != nil {
		return nil, refusal(err)
	}
	return &csi.CreateVolumeResponse{Volume: s.volume(v)}, nil
}

func checkName(name string) error {
	if name == "" {
		return invalid("name is missing")
	}
	if len(name) > maximumName {
		return invalid("name is longer than %d bytes", maximumName)
	}
	return nil
}

func (s *Server) source(from *csi.VolumeContentSource) (backend.Source, error) {
	var source backend.Source
	feature := csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT
	switch t := from.GetType().(type) {
	case nil:
		if from != nil {
			return source, invalid("volume_content_source is empty")
		}
		return source, nil
	case *csi.VolumeContentSource_Snapshot:
		source.Snapshot = t.Snapshot.GetSnapshotId()
	case *csi.VolumeContentSource_Volume:
		feature = csi.ControllerServiceCapability_RPC_CLONE_VOLUME
		source.Volume = t.Volume.GetVolumeId()
	}
	if source.IsZero() {
		return source, invalid("volume_content_source has no id")
	}
	if !s.hasController(feature) {
		return source, invalid("volume_content_source needs %s, which is not supported", feature)
	}
	return source, nil
}

// volume is the same message whenever the volume is reported, its content
// source included.
func (s *Server) volume(v backend.Volume) *csi.Volume {
	kind := "mount"
	if v.Block {
		kind = "block"
	}
	m := &csi.Volume{
		VolumeId:           v.ID,
		CapacityBytes:      v.Size,
		VolumeContext:      map[string]string{s.options.Name + "/access": kind},
		AccessibleTopology: s.accessible(v.Segment),
	}
	switch {
	case v.Source.Snapshot != "":
		m.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: v.Source.Snapshot},
		}}
	case v.Source.Volume != "":
		m.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: v.Source.Volume},
		}}
	}
	return m
}

// DeleteVolume removes a volume; an id that is not known was deleted before.
func (s *Server) DeleteVolume(_ context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, invalid("volume_id is missing")
	}
	if err := s.options.Backend.DeleteVolume(req.GetVolumeId()); err != nil {
		return nil, refusal(err)
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ControllerModifyVolume changes the settings of a volume.
func (s *Server) ControllerModifyVolume(_ context.Context, req *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	if _, err := s.find(req.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := checkMutable(req.GetMutableParameters()); err != nil {
		return nil, err
	}
	if err := s.options.Backend.ModifyVolume(req.GetVolumeId(), req.GetMutableParameters()); err != nil {
		return nil, refusal(err)
	}
	return &csi.ControllerModifyVolumeResponse{}, nil
}

// ControllerGetVolume reports one volume.
func (s *Server) ControllerGetVolume(_ context.Context, req *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	v, err := s.find(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeResponse{Volume: s.volume(v), Status: &csi.ControllerGetVolumeResponse_VolumeStatus{}}, nil
}

// ValidateVolumeCapabilities confirms what the volume can do.
func (s *Server) ValidateVolumeCapabilities(_ context.Context, req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	v, err := s.find(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if len(req.GetVolumeCapabilities()) == 0 {
		return nil, invalid("volume_capabilities are missing")
	}
	block, err := s.checkCapabilities(req.GetVolumeCapabilities())
	if err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	if block != v.Block {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: "the volume has the other access type"}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext:      req.GetVolumeContext(),
		VolumeCapabilities: req.GetVolumeCapabilities(),
		Parameters:         req.GetParameters(),
		MutableParameters:  req.GetMutableParameters(),
	}}, nil
}

func (s *Server) find(id string) (backend.Volume, error) {
	if id == "" {
		return backend.Volume{}, invalid("volume_id is missing")
	}
	v, ok := s.options.Backend.Volume(id)
	if !ok {
		return v, status.Errorf(codes.NotFound, "volume %q", id)
	}
	return v, nil
}

// ListVolumes reports all volumes, page by page.
func (s *Server) ListVolumes(_ context.Context, req *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	all := s.options.Backend.Volumes()
	p, err := cut(all, func(v backend.Volume) string { return v.ID }, req.GetStartingToken(), req.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	resp := &csi.ListVolumesResponse{NextToken: p.next}
	for _, v := range p.entries {
		resp.Entries = append(resp.Entries, &csi.ListVolumesResponse_Entry{Volume: s.volume(v)})
	}
	return resp, nil
}

// GetCapacity reports the room in the pools of a segment.
func (s *Server) GetCapacity(_ context.Context, req *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	if caps := req.GetVolumeCapabilities(); len(caps) > 0 {
		if _, err := s.checkCapabilities(caps); err != nil {
			// There is no room for what cannot be made.
			return &csi.GetCapacityResponse{MaximumVolumeSize: wrapperspb.Int64(0)}, nil
		}
	}
	var segment backend.Segment
	if t := req.GetAccessibleTopology(); t != nil && s.hasTopology() {
		segment = t.GetSegments()
	}
	c := s.options.Backend.Capacity(segment)
	return &csi.GetCapacityResponse{
		AvailableCapacity: c.Available,
		MaximumVolumeSize: wrapperspb.Int64(c.MaximumVolumeSize),
	}, nil
}
