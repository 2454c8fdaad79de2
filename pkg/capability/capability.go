// SPDX-License-Identifier: Apache-2.0

// Package capability owns what a driver said it can do, as one plain value that is asked for once.
//
// It must not know how the driver is reached. It stands beside the driver's name at the start of both
// programs, and is handed to the machines as part of their input.
package capability

import (
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Plugin and Controller are the identities of capabilities in the CSI spec.
type (
	// Plugin is a capability of GetPluginCapabilities.
	Plugin = csi.PluginCapability_Service_Type
	// Controller is a capability of ControllerGetCapabilities.
	Controller = csi.ControllerServiceCapability_RPC_Type
)

// Set is what the driver reported. The zero value can do nothing.
type Set struct {
	plugin     map[Plugin]bool
	controller map[Controller]bool
}

// New makes a set; answers that hold something else than a service or an RPC are ignored, as they may
// come from a newer spec.
func New(plugin []*csi.PluginCapability, controller []*csi.ControllerServiceCapability) Set {
	s := Set{plugin: map[Plugin]bool{}, controller: map[Controller]bool{}}
	for _, c := range plugin {
		if service := c.GetService(); service != nil {
			s.plugin[service.GetType()] = true
		}
	}
	for _, c := range controller {
		if rpc := c.GetRpc(); rpc != nil {
			s.controller[rpc.GetType()] = true
		}
	}
	return s
}

// Of makes a set from names, for tables.
func Of(plugin []Plugin, controller ...Controller) Set {
	s := Set{plugin: map[Plugin]bool{}, controller: map[Controller]bool{}}
	for _, p := range plugin {
		s.plugin[p] = true
	}
	for _, c := range controller {
		s.controller[c] = true
	}
	return s
}

// HasPlugin tells whether GetPluginCapabilities listed p.
func (s Set) HasPlugin(p Plugin) bool { return s.plugin[p] }

// Has tells whether ControllerGetCapabilities listed c.
func (s Set) Has(c Controller) bool { return s.controller[c] }

// HasController tells whether the driver has a controller service at all.
func (s Set) HasController() bool {
	return s.plugin[csi.PluginCapability_Service_CONTROLLER_SERVICE]
}

// HasTopology tells whether volumes of this driver are reachable from some nodes only.
func (s Set) HasTopology() bool {
	return s.plugin[csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS]
}

// Equal compares two sets: a driver that comes back with others has been replaced.
func (s Set) Equal(other Set) bool { return s.String() == other.String() }

// String lists all names in order, for logs and status pages.
func (s Set) String() string {
	var names []string
	for p := range s.plugin {
		names = append(names, p.String())
	}
	for c := range s.controller {
		names = append(names, c.String())
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
