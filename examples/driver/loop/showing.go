// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"fmt"
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

// each visits the devices of a file. The kernel is asked for the file itself: paths are different things in different
// mount namespaces.
func each(path string, visit func(showing) error) error {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return err
	}
	used, err := filepath.Glob("/sys/block/loop*/loop")
	if err != nil {
		return err
	}
	for _, entry := range used {
		if err := look("/dev/"+strings.Split(entry, "/")[3], &stat, visit); err != nil {
			return err
		}
	}
	return nil
}

func look(name string, stat *unix.Stat_t, visit func(showing) error) error {
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
	if found := (showing{name: name, device: device, info: info}); found.shows(stat) {
		return visit(found)
	}
	return nil
}

func (s showing) shows(stat *unix.Stat_t) bool {
	return s.info.Device == stat.Dev && s.info.Inode == stat.Ino
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
