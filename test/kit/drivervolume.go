// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

type storedVolume struct {
	// request is the one that made it, without secrets.
	request *csi.CreateVolumeRequest
	answer  *csi.Volume
}

func (v *storedVolume) source() string {
	source := v.request.GetVolumeContentSource()
	switch {
	case source.GetSnapshot() != nil:
		return " from " + source.GetSnapshot().GetSnapshotId()
	case source.GetVolume() != nil:
		return " from " + source.GetVolume().GetVolumeId()
	}
	return ""
}

// VolumeHandle is the handle of the volume with a name.
func VolumeHandle(name string) string { return "handle-of-" + name }

// defaultSize is what a volume gets when nobody asks for a size.
const defaultSize = 1 << 30

// CreateVolume has the same meaning as in driver.Conn.
func (d *Driver) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	var answer *csi.Volume
	in := invocation{
		op: fault.CreateVolume, request: request, subject: request.GetName(), secrets: request.GetSecrets(), takesSecrets: true,
	}
	err := d.do(ctx, in, func(reply *Reply) error {
		stored, err := d.makeVolume(request)
		if err != nil {
			return err
		}
		answer = proto.CloneOf(stored.answer)
		if reply.Volume != nil && (reply.Code == codes.OK) {
			answer = reply.Volume(answer)
		}
		return checkVolume(answer)
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// checkVolume is what driver.Conn thinks of an answer.
func checkVolume(v *csi.Volume) error {
	switch {
	case v == nil:
		return fault.Malformed(fault.CreateVolume, "the driver answered OK without a volume")
	case v.GetVolumeId() == "":
		return fault.Malformed(fault.CreateVolume, "the driver answered OK with a volume without volume_id")
	}
	return nil
}

func (d *Driver) makeVolume(request *csi.CreateVolumeRequest) (*storedVolume, error) {
	if request.GetName() == "" || len(request.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "a volume needs a name and capabilities")
	}
	bare := proto.CloneOf(request)
	bare.Secrets = nil
	for _, v := range d.volumes {
		if v.request.GetName() != request.GetName() {
			continue
		}
		if !isCompatible(v, bare) {
			return nil, status.Errorf(codes.AlreadyExists, "volume %s exists and differs from what is asked", request.GetName())
		}
		return v, nil
	}
	size := sizeFor(request.GetCapacityRange())
	if limit := request.GetCapacityRange().GetLimitBytes(); limit > 0 && size > limit {
		return nil, status.Error(codes.OutOfRange, "the size is above the limit")
	}
	if err := d.checkSource(request.GetVolumeContentSource()); err != nil {
		return nil, err
	}
	v := &storedVolume{request: bare, answer: d.describe(bare, size)}
	d.volumes[v.answer.GetVolumeId()] = v
	return v, nil
}

func (d *Driver) describe(request *csi.CreateVolumeRequest, size int64) *csi.Volume {
	v := &csi.Volume{
		VolumeId: VolumeHandle(request.GetName()), CapacityBytes: size,
		ContentSource: proto.CloneOf(request.GetVolumeContentSource()),
	}
	if d.Capabilities.HasTopology() {
		v.AccessibleTopology = d.place(request)
	}
	if d.Omit.ContentSource {
		v.ContentSource = nil
	}
	if d.Omit.Topology {
		v.AccessibleTopology = nil
	}
	if d.Omit.Size {
		v.CapacityBytes = 0
	}
	return v
}

func (d *Driver) place(request *csi.CreateVolumeRequest) []*csi.Topology {
	wanted := request.GetAccessibilityRequirements()
	switch {
	case d.Topology != nil:
		return d.Topology(request)
	case len(wanted.GetPreferred()) > 0:
		return []*csi.Topology{proto.CloneOf(wanted.GetPreferred()[0])}
	case len(wanted.GetRequisite()) > 0:
		return []*csi.Topology{proto.CloneOf(wanted.GetRequisite()[0])}
	}
	return nil
}

func sizeFor(asked *csi.CapacityRange) int64 {
	if asked.GetRequiredBytes() > 0 {
		return asked.GetRequiredBytes()
	}
	if limit := asked.GetLimitBytes(); limit > 0 {
		return min(limit, defaultSize)
	}
	return defaultSize
}

func isCompatible(v *storedVolume, asked *csi.CreateVolumeRequest) bool {
	size, wanted := sizeFor(v.request.GetCapacityRange()), asked.GetCapacityRange()
	if size < wanted.GetRequiredBytes() || (wanted.GetLimitBytes() > 0 && size > wanted.GetLimitBytes()) {
		return false
	}
	have := v.request
	return proto.Equal(have.GetVolumeContentSource(), asked.GetVolumeContentSource()) &&
		sameMap(have.GetParameters(), asked.GetParameters()) && sameCapabilities(have, asked)
}

func sameCapabilities(a, b *csi.CreateVolumeRequest) bool {
	if len(a.GetVolumeCapabilities()) != len(b.GetVolumeCapabilities()) {
		return false
	}
	for i, c := range a.GetVolumeCapabilities() {
		if !proto.Equal(c, b.GetVolumeCapabilities()[i]) {
			return false
		}
	}
	return true
}

func (d *Driver) checkSource(source *csi.VolumeContentSource) error {
	if s := source.GetSnapshot(); s != nil && d.snapshots[s.GetSnapshotId()] == nil {
		return status.Errorf(codes.NotFound, "snapshot %s does not exist", s.GetSnapshotId())
	}
	if v := source.GetVolume(); v != nil && d.volumes[v.GetVolumeId()] == nil {
		return status.Errorf(codes.NotFound, "volume %s does not exist", v.GetVolumeId())
	}
	return nil
}

// DeleteVolume has the same meaning as in driver.Conn.
func (d *Driver) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error {
	in := invocation{
		op: fault.DeleteVolume, request: request, subject: request.GetVolumeId(), secrets: request.GetSecrets(), takesSecrets: true,
	}
	return d.do(ctx, in, func(*Reply) error {
		if request.GetVolumeId() == "" {
			return status.Error(codes.InvalidArgument, "a volume id is needed")
		}
		delete(d.volumes, request.GetVolumeId())
		return nil
	})
}

// PutVolume gives the driver a volume that it has from elsewhere, and returns its handle.
func (d *Driver) PutVolume(name string, size int64) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	request := &csi.CreateVolumeRequest{Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: size}}
	v := &storedVolume{request: request, answer: &csi.Volume{VolumeId: VolumeHandle(name), CapacityBytes: size}}
	d.volumes[v.answer.GetVolumeId()] = v
	return v.answer.GetVolumeId()
}
