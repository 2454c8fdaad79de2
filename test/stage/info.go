// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	driverPatience = 30 * time.Second
	callTimeout    = 30 * time.Second
)

// Info is what a driver says about itself.
type Info struct {
	Name    string
	Version string
	// NodeID and Segments are of the node that the driver's process is on.
	NodeID   string
	Segments map[string]string

	features map[string]bool
}

// Can tells whether the driver claims a capability, named as in the CSI specification; plugin, controller and node
// capabilities are asked alike.
func (i Info) Can(feature string) bool { return i.features[feature] }

// With is the same driver with these capabilities and no others.
func (i Info) With(features ...string) Info {
	i.features = map[string]bool{}
	for _, feature := range features {
		i.features[feature] = true
	}
	return i
}

// HasTopology tells whether volumes of the driver are in places.
func (i Info) HasTopology() bool {
	return i.Can(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS.String()) && len(i.Segments) > 0
}

// TopologyKeys are the keys of its segments, sorted.
func (i Info) TopologyKeys() []string { return slices.Sorted(maps.Keys(i.Segments)) }

// endpoint is a connection to a driver and the three services on it.
type endpoint struct {
	connection *grpc.ClientConn
	identity   csi.IdentityClient
	controller csi.ControllerClient
	node       csi.NodeClient
}

func dial(socket string) (*endpoint, error) {
	connection, err := grpc.NewClient("unix:"+socketPath(socket), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("dialing the driver: %w", err)
	}
	return &endpoint{
		connection: connection, identity: csi.NewIdentityClient(connection),
		controller: csi.NewControllerClient(connection), node: csi.NewNodeClient(connection),
	}, nil
}

// socketPath accepts unix:///path as well as a plain path.
func socketPath(address string) string {
	return strings.TrimPrefix(strings.TrimPrefix(address, "unix://"), "unix:")
}

// ask waits until the driver answers, and asks it who it is and what it can do.
func (e *endpoint) ask(ctx context.Context) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, driverPatience)
	defer cancel()
	about, err := e.identity.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return Info{}, fmt.Errorf("asking the driver for its name: %w", err)
	}
	info := Info{Name: about.GetName(), Version: about.GetVendorVersion(), features: map[string]bool{}}
	if err := e.askFeatures(ctx, info.features); err != nil {
		return Info{}, err
	}
	place, err := e.node.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil {
		return Info{}, fmt.Errorf("asking the driver for its node: %w", err)
	}
	info.NodeID, info.Segments = place.GetNodeId(), place.GetAccessibleTopology().GetSegments()
	return info, nil
}

func (e *endpoint) askFeatures(ctx context.Context, features map[string]bool) error {
	plugin, pluginErr := e.identity.GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{})
	controller, controllerErr := e.controller.ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	node, nodeErr := e.node.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err := errors.Join(pluginErr, controllerErr, nodeErr); err != nil {
		return fmt.Errorf("asking the driver for its capabilities: %w", err)
	}
	for _, c := range plugin.GetCapabilities() {
		features[c.GetService().GetType().String()] = true
	}
	for _, c := range controller.GetCapabilities() {
		features[c.GetRpc().GetType().String()] = true
	}
	for _, c := range node.GetCapabilities() {
		features[c.GetRpc().GetType().String()] = true
	}
	return nil
}

// volumes lists the ids of all volumes; known is false if the driver cannot tell.
func (e *endpoint) volumes(ctx context.Context, info Info) (ids []string, known bool, err error) {
	if !info.Can(csi.ControllerServiceCapability_RPC_LIST_VOLUMES.String()) {
		return nil, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for token := ""; ; {
		page, err := e.controller.ListVolumes(ctx, &csi.ListVolumesRequest{StartingToken: token})
		if err != nil {
			return nil, false, fmt.Errorf("listing volumes: %w", err)
		}
		for _, entry := range page.GetEntries() {
			ids = append(ids, entry.GetVolume().GetVolumeId())
		}
		if token = page.GetNextToken(); token == "" {
			return ids, true, nil
		}
	}
}

// snapshots lists the ids of all snapshots; known is false if the driver cannot tell.
func (e *endpoint) snapshots(ctx context.Context, info Info) (ids []string, known bool, err error) {
	if !info.Can(csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS.String()) {
		return nil, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for token := ""; ; {
		page, err := e.controller.ListSnapshots(ctx, &csi.ListSnapshotsRequest{StartingToken: token})
		if err != nil {
			return nil, false, fmt.Errorf("listing snapshots: %w", err)
		}
		for _, entry := range page.GetEntries() {
			ids = append(ids, entry.GetSnapshot().GetSnapshotId())
		}
		if token = page.GetNextToken(); token == "" {
			return ids, true, nil
		}
	}
}
