// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// CreateVolume makes a volume, or finds the one that an earlier call of the same name made. An answer
// without a volume, or whose volume has no id, breaks the CSI spec and leaves the outcome open.
func (c *Conn) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	answer, err := call(ctx, c, fault.CreateVolume, func(ctx context.Context) (*csi.CreateVolumeResponse, error) {
		return c.controller.CreateVolume(ctx, request)
	})
	switch {
	case err != nil:
		return nil, err
	case answer.GetVolume() == nil:
		return nil, fault.Malformed(fault.CreateVolume, "the driver answered OK without a volume")
	case answer.GetVolume().GetVolumeId() == "":
		return nil, fault.Malformed(fault.CreateVolume, "the driver answered OK with a volume without volume_id")
	}
	return answer.GetVolume(), nil
}

// DeleteVolume removes a volume.
func (c *Conn) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error {
	_, err := call(ctx, c, fault.DeleteVolume, func(ctx context.Context) (*csi.DeleteVolumeResponse, error) {
		return c.controller.DeleteVolume(ctx, request)
	})
	return err
}

// CreateSnapshot takes a snapshot, or finds the one that an earlier call of the same name took. An
// answer without a snapshot, or whose snapshot has no id, leaves the outcome open.
func (c *Conn) CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.Snapshot, error) {
	answer, err := call(ctx, c, fault.CreateSnapshot, func(ctx context.Context) (*csi.CreateSnapshotResponse, error) {
		return c.controller.CreateSnapshot(ctx, request)
	})
	switch {
	case err != nil:
		return nil, err
	case answer.GetSnapshot() == nil:
		return nil, fault.Malformed(fault.CreateSnapshot, "the driver answered OK without a snapshot")
	case answer.GetSnapshot().GetSnapshotId() == "":
		return nil, fault.Malformed(fault.CreateSnapshot, "the driver answered OK with a snapshot without snapshot_id")
	case len(answer.GetSnapshot().GetSnapshotId()) > maxID:
		return nil, fault.Malformed(fault.CreateSnapshot, fmt.Sprintf("the driver answered OK with a snapshot_id of %d bytes, and %d are the most that is stored", len(answer.GetSnapshot().GetSnapshotId()), maxID))
	}
	return answer.GetSnapshot(), nil
}

// DeleteSnapshot removes a snapshot.
func (c *Conn) DeleteSnapshot(ctx context.Context, request *csi.DeleteSnapshotRequest) error {
	_, err := call(ctx, c, fault.DeleteSnapshot, func(ctx context.Context) (*csi.DeleteSnapshotResponse, error) {
		return c.controller.DeleteSnapshot(ctx, request)
	})
	return err
}

// GetSnapshot asks for one snapshot by its id. Nil without an error means an answer without a snapshot.
func (c *Conn) GetSnapshot(ctx context.Context, request *csi.GetSnapshotRequest) (*csi.Snapshot, error) {
	answer, err := call(ctx, c, fault.GetSnapshot, func(ctx context.Context) (*csi.GetSnapshotResponse, error) {
		return c.controller.GetSnapshot(ctx, request)
	})
	if err != nil {
		return nil, err
	}
	return answer.GetSnapshot(), nil
}

// ListSnapshots asks for the snapshots that the request's filter matches, one page of them.
func (c *Conn) ListSnapshots(ctx context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	return call(ctx, c, fault.ListSnapshots, func(ctx context.Context) (*csi.ListSnapshotsResponse, error) {
		return c.controller.ListSnapshots(ctx, request)
	})
}

// GetCapacity asks how much room there is.
func (c *Conn) GetCapacity(ctx context.Context, request *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	return call(ctx, c, fault.GetCapacity, func(ctx context.Context) (*csi.GetCapacityResponse, error) {
		return c.controller.GetCapacity(ctx, request)
	})
}

// NodeGetInfo asks where the driver beside this process runs; only in node deployment.
func (c *Conn) NodeGetInfo(ctx context.Context) (*csi.NodeGetInfoResponse, error) {
	return call(ctx, c, fault.Identify, func(ctx context.Context) (*csi.NodeGetInfoResponse, error) {
		return c.node.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	})
}
