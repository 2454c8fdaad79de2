// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// CreateVolume implements Caller.
func (d *Driver) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	return pass(ctx, d.gates[fault.CreateVolume], request.GetName(), func() (*csi.Volume, error) {
		return d.caller.CreateVolume(ctx, request)
	})
}

// DeleteVolume implements Caller.
func (d *Driver) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error {
	_, err := pass(ctx, d.gates[fault.DeleteVolume], request.GetVolumeId(), func() (struct{}, error) {
		return struct{}{}, d.caller.DeleteVolume(ctx, request)
	})
	return err
}

// CreateSnapshot implements Caller.
func (d *Driver) CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.Snapshot, error) {
	return pass(ctx, d.gates[fault.CreateSnapshot], request.GetName(), func() (*csi.Snapshot, error) {
		return d.caller.CreateSnapshot(ctx, request)
	})
}

// DeleteSnapshot implements Caller.
func (d *Driver) DeleteSnapshot(ctx context.Context, request *csi.DeleteSnapshotRequest) error {
	_, err := pass(ctx, d.gates[fault.DeleteSnapshot], request.GetSnapshotId(), func() (struct{}, error) {
		return struct{}{}, d.caller.DeleteSnapshot(ctx, request)
	})
	return err
}

// GetSnapshot implements Caller.
func (d *Driver) GetSnapshot(ctx context.Context, request *csi.GetSnapshotRequest) (*csi.Snapshot, error) {
	return pass(ctx, d.gates[fault.GetSnapshot], "", func() (*csi.Snapshot, error) {
		return d.caller.GetSnapshot(ctx, request)
	})
}

// ListSnapshots implements Caller.
func (d *Driver) ListSnapshots(ctx context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	return pass(ctx, d.gates[fault.ListSnapshots], "", func() (*csi.ListSnapshotsResponse, error) {
		return d.caller.ListSnapshots(ctx, request)
	})
}

// GetCapacity implements Caller.
func (d *Driver) GetCapacity(ctx context.Context, request *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	return pass(ctx, d.gates[fault.GetCapacity], "", func() (*csi.GetCapacityResponse, error) {
		return d.caller.GetCapacity(ctx, request)
	})
}
