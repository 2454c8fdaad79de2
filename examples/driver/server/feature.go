// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Features are the capabilities that the driver claims, each written as
// plugin:NAME, controller:NAME or node:NAME with the name in the CSI
// specification.
type Features map[string]bool

const (
	pluginPrefix     = "plugin:"
	controllerPrefix = "controller:"
	nodePrefix       = "node:"
)

var (
	pluginFeatures = []csi.PluginCapability_Service_Type{
		csi.PluginCapability_Service_CONTROLLER_SERVICE,
		csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	}
	controllerFeatures = []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
		csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_GET_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
		csi.ControllerServiceCapability_RPC_MODIFY_VOLUME,
		csi.ControllerServiceCapability_RPC_GET_SNAPSHOT,
	}
	nodeFeatures = []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}
	// needs says which feature a method belongs to.
	needs = map[string]string{
		"CreateVolume":           controllerPrefix + "CREATE_DELETE_VOLUME",
		"DeleteVolume":           controllerPrefix + "CREATE_DELETE_VOLUME",
		"ListVolumes":            controllerPrefix + "LIST_VOLUMES",
		"GetCapacity":            controllerPrefix + "GET_CAPACITY",
		"CreateSnapshot":         controllerPrefix + "CREATE_DELETE_SNAPSHOT",
		"DeleteSnapshot":         controllerPrefix + "CREATE_DELETE_SNAPSHOT",
		"ListSnapshots":          controllerPrefix + "LIST_SNAPSHOTS",
		"GetSnapshot":            controllerPrefix + "GET_SNAPSHOT",
		"ControllerGetVolume":    controllerPrefix + "GET_VOLUME",
		"ControllerModifyVolume": controllerPrefix + "MODIFY_VOLUME",
		"NodeStageVolume":        nodePrefix + "STAGE_UNSTAGE_VOLUME",
		"NodeUnstageVolume":      nodePrefix + "STAGE_UNSTAGE_VOLUME",
		"NodeGetVolumeStats":     nodePrefix + "GET_VOLUME_STATS",
	}
)

// AllFeatures are the capabilities that the driver has code for.
func AllFeatures() Features {
	all := Features{}
	for _, f := range pluginFeatures {
		all[pluginPrefix+f.String()] = true
	}
	for _, f := range controllerFeatures {
		all[controllerPrefix+f.String()] = true
	}
	for _, f := range nodeFeatures {
		all[nodePrefix+f.String()] = true
	}
	return all
}

// ParseFeatures reads a list such as "-CLONE_VOLUME,-node:GET_VOLUME_STATS".
// An entry with a minus is switched off; if there are entries without, only
// those are claimed. A name without a prefix stands for all that bear it.
func ParseFeatures(list string) (Features, error) {
	all := AllFeatures()
	chosen, off := Features{}, Features{}
	only := false
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		name, minus := strings.CutPrefix(entry, "-")
		into := off
		if !minus {
			into, only = chosen, true
		}
		found := false
		for f := range all {
			if f == name || f[strings.IndexByte(f, ':')+1:] == name {
				into[f], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("reading capabilities: no %q among %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		}
	}
	if !only {
		chosen = all
	}
	maps.DeleteFunc(chosen, func(f string, _ bool) bool { return off[f] })
	return chosen, nil
}

// gate answers Unimplemented for what is not claimed.
func (s *Server) gate(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if f := needs[method(info)]; f != "" && !s.options.Features[f] {
		return nil, status.Errorf(codes.Unimplemented, "the driver does not claim %s", f)
	}
	if strings.HasPrefix(info.FullMethod, "/csi.v1.Controller/") && !s.options.Features[pluginPrefix+"CONTROLLER_SERVICE"] {
		return nil, status.Error(codes.Unimplemented, "the driver has no controller service")
	}
	return next(ctx, req)
}

func (s *Server) hasController(t csi.ControllerServiceCapability_RPC_Type) bool {
	return s.options.Features[controllerPrefix+t.String()]
}

func (s *Server) hasNode(t csi.NodeServiceCapability_RPC_Type) bool {
	return s.options.Features[nodePrefix+t.String()]
}

// hasTopology needs a table as well as the capability.
func (s *Server) hasTopology() bool {
	return len(s.options.Topology) > 0 &&
		s.options.Features[pluginPrefix+csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS.String()]
}

// ControllerGetCapabilities lists what is claimed.
func (s *Server) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	resp := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range controllerFeatures {
		if s.hasController(t) {
			resp.Capabilities = append(resp.Capabilities, &csi.ControllerServiceCapability{
				Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}},
			})
		}
	}
	return resp, nil
}

// NodeGetCapabilities lists what is claimed.
func (s *Server) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	resp := &csi.NodeGetCapabilitiesResponse{}
	for _, t := range nodeFeatures {
		if s.hasNode(t) {
			resp.Capabilities = append(resp.Capabilities, &csi.NodeServiceCapability{
				Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}},
			})
		}
	}
	return resp, nil
}
