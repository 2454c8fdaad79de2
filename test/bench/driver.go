// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// capacity is what the driver has in each segment.
const capacity = 1 << 40

// memoryDriver is a driver that answers at once and stores nothing but names, so that what is measured is the programs
// beside it. It lives in this process and knows for certain how often it was asked, by object.
type memoryDriver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer

	name string
	// segment is of the node that the driver says it is on; without one it has no topology.
	segment map[string]string
	server  *grpc.Server

	mu        sync.Mutex
	volumes   map[string]*csi.Volume
	snapshots map[string]*csi.Snapshot
	calls     map[string]map[string]int
	answered  map[string]time.Time
	// lag is how long a call takes, and failing the code of every answer while it is set.
	lag     time.Duration
	failing codes.Code
}

// startDriver serves on a socket until stop is called.
func startDriver(socket, name string, segment map[string]string) (*memoryDriver, error) {
	d := &memoryDriver{
		name: name, segment: segment, volumes: map[string]*csi.Volume{}, snapshots: map[string]*csi.Snapshot{},
	}
	d.forget()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listening for the sidecars: %w", err)
	}
	d.server = grpc.NewServer(grpc.UnaryInterceptor(d.meet))
	csi.RegisterIdentityServer(d.server, d)
	csi.RegisterControllerServer(d.server, d)
	csi.RegisterNodeServer(d.server, d)
	go func() { _ = d.server.Serve(listener) }() // It ends with stop; a socket that breaks shows in every call.
	return d, nil
}

func (d *memoryDriver) stop() { d.server.Stop() }

// subject is what a call is about: the name of what is to be made, the id of what is to be deleted, or a place.
func subject(request any) (object string, isWork bool) {
	switch r := request.(type) {
	case *csi.CreateVolumeRequest:
		return r.GetName(), true
	case *csi.DeleteVolumeRequest:
		return r.GetVolumeId(), true
	case *csi.CreateSnapshotRequest:
		return r.GetName(), true
	case *csi.DeleteSnapshotRequest:
		return r.GetSnapshotId(), true
	case *csi.GetCapacityRequest:
		return place(r.GetAccessibleTopology().GetSegments(), r.GetParameters()), true
	}
	return "", false
}

// meet counts what is asked for an object, and is slow or broken on demand.
func (d *memoryDriver) meet(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	object, isWork := subject(request)
	if !isWork {
		return next(ctx, request)
	}
	method := info.FullMethod[len("/csi.v1.Controller/"):]
	d.mu.Lock()
	if d.calls[method] == nil {
		d.calls[method] = map[string]int{}
	}
	d.calls[method][object]++
	lag, failing := d.lag, d.failing
	d.mu.Unlock()
	if lag > 0 {
		time.Sleep(lag)
	}
	if failing != codes.OK {
		return nil, status.Error(failing, "the driver was told to be away")
	}
	answer, err := next(ctx, request)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answered[object] = time.Now()
	return answer, err
}

// forget begins to count anew.
func (d *memoryDriver) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls, d.answered = map[string]map[string]int{}, map[string]time.Time{}
}

// be makes the driver slow or broken from now on.
func (d *memoryDriver) be(lag time.Duration, failing codes.Code) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lag, d.failing = lag, failing
}

// count is how many calls of a method there were since forget, and how many there were for the object with most.
func (d *memoryDriver) count(method string) (all, most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.calls[method] {
		all, most = all+n, max(most, n)
	}
	return all, most
}

// subjects is how many objects a method was called for.
func (d *memoryDriver) subjects(method string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.calls[method])
}

// answeredAt is when the latest answer about an object was ready; it is zero if there was none.
func (d *memoryDriver) answeredAt(object string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answered[object]
}

// CreateVolume makes a volume, or finds it by its name.
func (d *memoryDriver) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := "vol-" + r.GetName()
	v := d.volumes[id]
	if v == nil {
		v = &csi.Volume{VolumeId: id, CapacityBytes: r.GetCapacityRange().GetRequiredBytes(), ContentSource: r.GetVolumeContentSource()}
		if preferred := r.GetAccessibilityRequirements().GetPreferred(); len(preferred) > 0 {
			v.AccessibleTopology = preferred[:1]
		}
		d.volumes[id] = v
	}
	return &csi.CreateVolumeResponse{Volume: v}, nil
}

// DeleteVolume deletes a volume, if it is there.
func (d *memoryDriver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.volumes, r.GetVolumeId())
	return &csi.DeleteVolumeResponse{}, nil
}

// CreateSnapshot takes a snapshot, which is ready at once, or finds it by its name.
func (d *memoryDriver) CreateSnapshot(_ context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := "snap-" + r.GetName()
	s := d.snapshots[id]
	if s == nil {
		s = &csi.Snapshot{
			SnapshotId: id, SourceVolumeId: r.GetSourceVolumeId(), ReadyToUse: true, CreationTime: timestamppb.Now(),
			SizeBytes: d.volumes[r.GetSourceVolumeId()].GetCapacityBytes(),
		}
		d.snapshots[id] = s
	}
	return &csi.CreateSnapshotResponse{Snapshot: s}, nil
}

// DeleteSnapshot deletes a snapshot, if it is there.
func (d *memoryDriver) DeleteSnapshot(_ context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.snapshots, r.GetSnapshotId())
	return &csi.DeleteSnapshotResponse{}, nil
}

// GetCapacity says that there is as much room everywhere.
func (d *memoryDriver) GetCapacity(context.Context, *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	return &csi.GetCapacityResponse{AvailableCapacity: capacity, MaximumVolumeSize: wrapperspb.Int64(capacity)}, nil
}
