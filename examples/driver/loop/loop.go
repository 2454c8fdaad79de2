// SPDX-License-Identifier: Apache-2.0

// Package loop owns how a file becomes a block device: through the kernel's loop devices, which outlive this process, and
// which it finds again by the file that they show.
//
// It must not know volumes; it is given a path.
//
// On the walk of NodePublishVolume it stands before mount, for volumes with block access.
package loop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Access is how a device may be used.
type Access uint32

// The ways of access.
const (
	ReadWrite Access = 0
	ReadOnly  Access = unix.LO_FLAGS_READ_ONLY
)

const (
	controlPath = "/dev/loop-control"
	// attempts are for others who take the device that was free a moment ago.
	attempts = 20
)

// turn keeps two calls from making two devices of one file.
var turn sync.Mutex

// Probe says why there are no loop devices here, or nothing.
func Probe() error {
	control, err := os.OpenFile(controlPath, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("using loop devices: %w", err)
	}
	return control.Close()
}

// Device is one that shows some file.
type Device struct {
	Name   string
	Access Access
}

// Devices finds those of a file, also of one that is gone.
func Devices(path string) ([]Device, error) {
	var found []Device
	err := each(path, func(s showing) error {
		found = append(found, Device{s.name, s.access()})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the devices of %s: %w", path, err)
	}
	return found, nil
}

// Names lists all loop devices of the machine, whatever they show.
func Names() ([]string, error) { return filepath.Glob("/dev/loop[0-9]*") }

// Attach gives the device of a file, and makes it if there is none.
func Attach(path string, access Access) (device string, err error) {
	turn.Lock()
	defer turn.Unlock()
	mode := os.O_RDWR
	if access == ReadOnly {
		mode = os.O_RDONLY
	}
	file, err := os.OpenFile(path, mode, 0)
	if err != nil {
		return "", fmt.Errorf("making a device of a file: %w", err)
	}
	defer file.Close() // The kernel has its own.
	err = each(path, func(found showing) error {
		if device != "" || found.access() != access {
			return nil
		}
		device = found.name
		return found.keep()
	})
	if err != nil {
		return "", fmt.Errorf("looking for the device of %s: %w", path, err)
	}
	if device != "" {
		return device, nil
	}
	for range attempts {
		device, err = take(file, access)
		if !errors.Is(err, unix.EBUSY) {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("making a device of %s: %w", path, err)
	}
	return device, nil
}

func take(file *os.File, access Access) (string, error) {
	control, err := os.OpenFile(controlPath, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer control.Close()
	number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return "", err
	}
	path := fmt.Sprintf("/dev/loop%d", number)
	device, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer device.Close()
	config := unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: uint32(access)}}
	copy(config.Info.File_name[:len(config.Info.File_name)-1], file.Name())
	return path, unix.IoctlLoopConfigure(int(device.Fd()), &config)
}

// Detach frees the devices of a file that have this access, also of one that is gone. One that is still open somewhere goes when it is closed there,
// unless it is attached again before.
func Detach(path string, access Access) error {
	turn.Lock()
	defer turn.Unlock()
	var failures []error
	err := each(path, func(found showing) error {
		if found.access() == access {
			failures = append(failures, found.free())
		}
		return nil
	})
	if err := errors.Join(append(failures, err)...); err != nil {
		return fmt.Errorf("freeing the devices of %s: %w", path, err)
	}
	return nil
}

// Verify asks the kernel whether a device, at whatever path it is, shows the file with this access. A device that was freed
// may show another one by now.
func Verify(device, path string, access Access) error {
	wanted, err := find(path)
	if err != nil {
		return fmt.Errorf("checking the device of %s: %w", path, err)
	}
	open, err := os.Open(device)
	if err != nil {
		return fmt.Errorf("checking the device of %s: %w", path, err)
	}
	defer open.Close() // Only read from.
	info, err := unix.IoctlLoopGetStatus64(int(open.Fd()))
	if err != nil {
		return fmt.Errorf("checking the device of %s: asking %s: %w", path, device, err)
	}
	found := showing{name: device, device: open, info: info}
	if !found.shows(wanted) || found.access() != access {
		return fmt.Errorf("checking the device of %s: %s shows something else", path, device)
	}
	return nil
}
