// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
)

// checkCapabilities finds out whether the volume is for block access, and
// refuses combinations that no volume here can have.
func (s *Server) checkCapabilities(caps []*csi.VolumeCapability) (block bool, err error) {
	if len(caps) == 0 {
		return false, invalid("volume_capabilities are missing")
	}
	for i, c := range caps {
		b, err := s.checkCapability(c)
		if err != nil {
			return false, err
		}
		if i > 0 && b != block {
			return false, invalid("a volume is for block or for mount access, not for both")
		}
		block = b
	}
	return block, nil
}

func (s *Server) checkCapability(c *csi.VolumeCapability) (block bool, err error) {
	if c == nil {
		return false, invalid("volume_capability is missing")
	}
	switch c.GetAccessType().(type) {
	case *csi.VolumeCapability_Block:
		block = true
	case *csi.VolumeCapability_Mount:
	default:
		return false, invalid("access_type is missing")
	}
	switch mode := c.GetAccessMode().GetMode(); mode {
	case csi.VolumeCapability_AccessMode_UNKNOWN:
		return false, invalid("access_mode is missing")
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		if !s.hasController(csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER) {
			return false, invalid("access_mode %s is not supported", mode)
		}
	default:
		if _, known := csi.VolumeCapability_AccessMode_Mode_name[int32(mode)]; !known {
			return false, invalid("access_mode %d is unknown", mode)
		}
	}
	return block, nil
}

// checkMutable accepts the two settings that a volume has here.
func checkMutable(parameters map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(parameters)) {
		v := parameters[k]
		switch k {
		case "tier":
			if !slices.Contains([]string{"bronze", "silver", "gold"}, v) {
				return invalid("mutable parameter tier is bronze, silver or gold, not %q", v)
			}
		case "iops":
			if n, err := strconv.Atoi(v); err != nil || n < 1 {
				return invalid("mutable parameter iops is a positive number, not %q", v)
			}
		default:
			return invalid("mutable parameter %q is unknown; there are iops and tier", k)
		}
	}
	return nil
}

// segments translates terms; the backend is told nothing if topology is not
// claimed.
func (s *Server) segments(terms []*csi.Topology) []backend.Segment {
	if !s.hasTopology() {
		return nil
	}
	var all []backend.Segment
	for _, t := range terms {
		all = append(all, backend.Segment(t.GetSegments()))
	}
	return all
}

// accessible translates the place of a volume for the caller.
func (s *Server) accessible(segment backend.Segment) []*csi.Topology {
	if !s.hasTopology() || len(segment) == 0 {
		return nil
	}
	return []*csi.Topology{{Segments: segment}}
}
