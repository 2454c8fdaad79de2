// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
	"github.com/csi-tandem/csi-tandem/examples/driver/loop"
	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
)

// vanish undoes appear. What is at the path and does not show this volume is left as it is: another volume's, or nobody's.
func (s *Server) vanish(id, path string, undo func(path string, own []string) error) error {
	defer s.turns.take(id)()
	own, err := s.shownAs(id, path)
	seen := mount.Nothing
	if err == nil {
		seen, err = mount.Look(path, own)
	}
	// With nothing mounted, the path itself is of a publication only if that is on record.
	if err == nil && (seen != mount.Nothing || s.hasUse(id, func(u backend.Use) bool { return u.Path == path })) {
		err = undo(path, own)
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return s.release(id, path)
}

// shownAs lists what a volume appears as: its data, wherever they are or were, and its devices.
func (s *Server) shownAs(id, path string) ([]string, error) {
	own := s.options.Backend.Remains(id)
	v, known := s.options.Backend.Volume(id)
	if known && !v.Block {
		return own, nil
	}
	if s.hasUse(id, func(u backend.Use) bool { return u.Path == path && !u.Staging }) {
		// Others may have freed the device since, so that it shows nothing or another file.
		devices, err := loop.Names()
		return append(own, devices...), err
	}
	for _, data := range s.options.Backend.Remains(id) {
		devices, err := loop.Devices(data)
		if err != nil {
			return nil, err
		}
		for _, device := range devices {
			own = append(own, device.Name)
		}
	}
	return own, nil
}

func (s *Server) hasUse(id string, matches func(backend.Use) bool) bool {
	v, _ := s.options.Backend.Volume(id)
	return slices.ContainsFunc(v.Uses, matches)
}

// release ends a use, and frees the devices that no other use needs. A kill
// in between leaves a device, which the repeated call frees.
func (s *Server) release(id, path string) error {
	if err := s.free(id, path); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if err := s.options.Backend.EndUse(id, path); err != nil {
		return refusal(err)
	}
	return nil
}

// free does not ask how block volumes are published now: the driver may have been started in another way since.
func (s *Server) free(id, path string) error {
	v, known := s.options.Backend.Volume(id)
	if known && !v.Block {
		return nil
	}
	for _, data := range s.options.Backend.Remains(id) {
		devices, err := loop.Devices(data)
		if err != nil {
			return err
		}
		for _, device := range devices {
			needed, err := s.isNeeded(id, path, device)
			if err == nil && !needed {
				err = loop.Detach(data, device.Access)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// isNeeded says whether a volume is published by a device anywhere but at a path. Nothing is on record of a volume that is gone.
func (s *Server) isNeeded(id, path string, device loop.Device) (bool, error) {
	if _, known := s.options.Backend.Volume(id); !known {
		return mount.IsShown(device.Name)
	}
	return s.hasUse(id, func(u backend.Use) bool {
		return !u.Staging && u.Path != path && access(u.ReadOnly) == device.Access
	}), nil
}
