// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
	"github.com/csi-tandem/csi-tandem/examples/driver/loop"
	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
)

// appear records the use and makes the volume appear at its path. The caller has the volume's turn. A use stays on record
// when it fails, since something may be mounted and the caller is bound to try again or to undo; unless somebody else's is
// there, which the undoing would take for ours.
func (s *Server) appear(v backend.Volume, use backend.Use) error {
	source, err := s.options.Backend.DataPath(v.ID)
	if err != nil {
		return refusal(err)
	}
	// For block access, and where nothing can be mounted, publishing goes to
	// the data directly: the staging directory belongs to the caller.
	onRecordOnly := use.Staging && (v.Block || s.options.Mount == mount.Link)
	if err := s.permits(use, source, onRecordOnly); err != nil {
		return invalid("%s", err)
	}
	if err := s.options.Backend.BeginUse(v.ID, use); err != nil {
		return refusal(err)
	}
	if onRecordOnly {
		return nil
	}
	err = s.attach(v, use, source)
	if errors.Is(err, fs.ErrExist) && !slices.Contains(v.Uses, use) {
		err = errors.Join(err, s.release(v.ID, use.Path))
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, mount.ErrLinked):
		return invalid("%s", err)
	default:
		return status.Error(codes.Internal, err.Error())
	}
}

// permits refuses, before anything is done or on record, a path that could not be given up again.
func (s *Server) permits(use backend.Use, source string, onRecordOnly bool) error {
	if !filepath.IsAbs(use.Path) {
		return fmt.Errorf("%s is no absolute path", use.Path)
	}
	if !onRecordOnly {
		if err := s.options.Mount.Check(mount.Target{Source: source, Path: use.Path}); err != nil {
			return err
		}
	}
	if use.Staging {
		return nil // The directory is the caller's, with what is in it.
	}
	return mount.Vacant(use.Path)
}

func (s *Server) attach(v backend.Volume, use backend.Use, source string) error {
	target := mount.Target{Source: source, Path: use.Path, ReadOnly: use.ReadOnly}
	if !v.Block || !s.options.Devices {
		return s.options.Mount.Attach(target)
	}
	// The mount of a device says nothing about what may be written to it.
	device, err := loop.Attach(source, access(use))
	if err != nil {
		return err
	}
	target.Source = device
	if err := s.options.Mount.Attach(target); err != nil {
		return err
	}
	// Whoever on the machine frees a device makes it another's, and what is written to it would land there.
	if err := loop.Verify(use.Path, source, access(use)); err != nil {
		return errors.Join(err, mount.Detach(use.Path))
	}
	return nil
}

func access(use backend.Use) loop.Access {
	if use.ReadOnly {
		return loop.ReadOnly
	}
	return loop.ReadWrite
}

// vanish undoes appear. A path that is not where this volume is, is left as it is: another volume's, or nobody's.
func (s *Server) vanish(id, path string, remove func(path string) error) error {
	defer s.turns.take(id)()
	ours, err := s.isAt(id, path)
	if err == nil && ours {
		err = remove(path)
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return s.release(id, path)
}

func (s *Server) isAt(id, path string) (bool, error) {
	if holders := s.options.Backend.Holders(path); len(holders) > 0 {
		return len(holders) == 1 && holders[0] == id, nil
	}
	if _, known := s.options.Backend.Volume(id); known {
		return false, nil // A use is on record before anything is mounted, and until it is not.
	}
	return mount.Shows(path, s.options.Backend.Remains(id))
}

// release ends a use, and frees the devices that no other use needs. A kill
// in between leaves a device, which the repeated call frees.
func (s *Server) release(id, path string) error {
	v, ok := s.options.Backend.Volume(id)
	if ok && v.Block && s.options.Devices {
		needed := map[loop.Access]bool{}
		for _, u := range v.Uses {
			if !u.Staging && u.Path != path {
				needed[access(u)] = true
			}
		}
		data, err := s.options.Backend.DataPath(id)
		for _, a := range []loop.Access{loop.ReadWrite, loop.ReadOnly} {
			if err == nil && !needed[a] {
				err = loop.Detach(data, a)
			}
		}
		if err != nil {
			return status.Error(codes.Internal, err.Error())
		}
	}
	if err := s.options.Backend.EndUse(id, path); err != nil {
		return refusal(err)
	}
	return nil
}
