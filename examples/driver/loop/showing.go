// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// showing is a device that shows a file. It is held open: while it is, nobody can free it and make it show another, which
// between a look and what is done upon it somebody else on the machine might.
type showing struct {
	name   string
	device *os.File
	info   *unix.LoopInfo64
}

// file is what devices are looked for by: what the kernel knows it as, since paths are different things in different mount
// namespaces, or the name that the kernel still has when it is gone.
type file struct {
	volume, inode uint64
	gone          string
}

func find(path string) (file, error) {
	var stat unix.Stat_t
	err := unix.Stat(path, &stat)
	if errors.Is(err, fs.ErrNotExist) {
		return file{gone: path + " (deleted)"}, nil
	}
	return file{volume: stat.Dev, inode: stat.Ino}, err
}

// each visits the devices of a file.
func each(path string, visit func(showing) error) error {
	wanted, err := find(path)
	if err != nil {
		return err
	}
	used, err := filepath.Glob("/sys/block/loop*/loop")
	if err != nil {
		return err
	}
	for _, entry := range used {
		if err := look("/dev/"+strings.Split(entry, "/")[3], wanted, visit); err != nil {
			return err
		}
	}
	return nil
}

func look(name string, wanted file, visit func(showing) error) error {
	device, err := os.Open(name)
	if err != nil {
		// It went meanwhile, or is not there in this view of /dev, and then it is none of ours.
		return nil
	}
	defer device.Close() // Only read from.
	info, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
	if err != nil {
		return nil // It shows nothing any more.
	}
	if found := (showing{name: name, device: device, info: info}); found.shows(wanted) {
		return visit(found)
	}
	return nil
}

func (s showing) shows(wanted file) bool {
	if wanted.gone != "" {
		// The kernel's own record of the name is too short for most paths.
		path, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(s.name), "loop", "backing_file"))
		return err == nil && strings.TrimSuffix(string(path), "\n") == wanted.gone
	}
	return s.info.Device == wanted.volume && s.info.Inode == wanted.inode
}

func (s showing) access() Access { return Access(s.info.Flags & unix.LO_FLAGS_READ_ONLY) }

// keep takes back a freeing that waits for the last one to close the device. A pod that is gone, and with it the publication,
// may take a while to do so, and would then take the device away from the next.
func (s showing) keep() error {
	if s.info.Flags&unix.LO_FLAGS_AUTOCLEAR == 0 {
		return nil
	}
	info := *s.info
	info.Flags &^= unix.LO_FLAGS_AUTOCLEAR
	if err := unix.IoctlLoopSetStatus64(int(s.device.Fd()), &info); err != nil {
		return fmt.Errorf("keeping %s: %w", s.name, err)
	}
	return nil
}

func (s showing) free() error {
	if err := unix.IoctlSetInt(int(s.device.Fd()), unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("freeing %s: %w", s.name, err)
	}
	return nil
}
