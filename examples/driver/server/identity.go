// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// GetPluginInfo tells the name that StorageClass.provisioner refers to.
func (s *Server) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.options.Name, VendorVersion: s.options.Version}, nil
}

// GetPluginCapabilities claims topology only if there is a table of nodes.
func (s *Server) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	resp := &csi.GetPluginCapabilitiesResponse{}
	for _, t := range pluginFeatures {
		if t == csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS && !s.hasTopology() {
			continue
		}
		if s.options.Features[pluginPrefix+t.String()] {
			resp.Capabilities = append(resp.Capabilities, &csi.PluginCapability{
				Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: t}},
			})
		}
	}
	return resp, nil
}

// Probe is always ready: the state is loaded before the socket exists.
func (s *Server) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}
