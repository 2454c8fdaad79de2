// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
	"github.com/csi-tandem/csi-tandem/examples/driver/loop"
	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
)

// appear records the use and makes the volume appear at its path. The caller has the volume's turn. A use stays on record
// when it fails, since something may be mounted and the caller is bound to try again or to undo; unless the path was refused,
// of which a caller may think that there is nothing to undo.
func (s *Server) appear(v backend.Volume, use backend.Use) error {
	source, err := s.options.Backend.DataPath(v.ID)
	if err != nil {
		return refusal(err)
	}
	// For block access, and where nothing can be mounted, publishing goes to
	// the data directly: the staging directory belongs to the caller.
	onRecordOnly := use.Staging && (v.Block || s.options.Mount == mount.Link)
	if err := s.permits(use.Path); err != nil {
		return invalid("%s", err)
	}
	if err := s.options.Backend.BeginUse(v.ID, use); err != nil {
		return refusal(err)
	}
	if onRecordOnly {
		return nil
	}
	err = s.attach(v, mount.Target{Source: source, Path: use.Path, ReadOnly: use.ReadOnly, Covers: use.Staging})
	if isRefused(err) && !slices.Contains(v.Uses, use) {
		err = errors.Join(err, s.release(v.ID, use.Path))
	}
	switch {
	case err == nil:
		return nil
	case isRefused(err) && !errors.Is(err, fs.ErrExist):
		return invalid("%s", err)
	default:
		return status.Error(codes.Internal, err.Error()) // Others that are there may go.
	}
}

func isRefused(err error) bool {
	return slices.ContainsFunc([]error{fs.ErrExist, fs.ErrNotExist, mount.ErrLinked, mount.ErrContent}, func(reason error) bool {
		return errors.Is(err, reason)
	})
}

// permits refuses, before anything is done or on record, a path that could not be given up again.
func (s *Server) permits(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s is no absolute path", path)
	}
	// What the kernel cannot even look at, such as too long a name, it cannot be asked to remove either.
	if _, err := os.Lstat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.options.Backend.Holds(path) {
		return fmt.Errorf("%s has the state of the driver", path)
	}
	return nil
}

// oneName keeps a path from being on record under several names.
func oneName(path string) string {
	if path = filepath.Clean(path); filepath.IsAbs(path) {
		return mount.Point(path)
	}
	return path
}

func (s *Server) attach(v backend.Volume, target mount.Target) error {
	if !v.Block || !s.options.Devices {
		return s.options.Mount.Attach(target)
	}
	// The mount of a device says nothing about what may be written to it.
	device, err := loop.Attach(target.Source, access(target.ReadOnly))
	if err != nil {
		return err
	}
	return s.attachDevice(device, target)
}

func (s *Server) attachDevice(device string, target mount.Target) error {
	data := target.Source
	target.Source = device
	if err := s.options.Mount.Attach(target); err != nil {
		return err
	}
	// Whoever on the machine frees a device makes it another's, and what is written to it would land there.
	if err := loop.Verify(target.Path, data, access(target.ReadOnly)); err != nil {
		return errors.Join(err, mount.Detach(target.Path, []string{device}))
	}
	return nil
}

func access(readOnly bool) loop.Access {
	if readOnly {
		return loop.ReadOnly
	}
	return loop.ReadWrite
}
