// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// loop is a loop device in use, and the file that it shows: by its path, by the name that its maker had for it and, since a path
// is another one or none in another mount namespace, by what the kernel knows it as.
type loop struct {
	device        string
	path, name    string
	volume, inode uint64
}

func usedLoops() []loop {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	var used []loop
	for _, file := range files {
		l := loop{device: "/dev/" + strings.Split(file, "/")[3]}
		content, err := os.ReadFile(file)
		if err != nil {
			continue // It went meanwhile.
		}
		l.path = strings.TrimSpace(string(content))
		if device, err := os.Open(l.device); err == nil {
			if info, err := unix.IoctlLoopGetStatus64(int(device.Fd())); err == nil {
				l.volume, l.inode, l.name = info.Device, info.Inode, unix.ByteSliceToString(info.File_name[:])
			}
			_ = device.Close() // Only read from.
		}
		used = append(used, l)
	}
	return used
}

// loopsOf lists the devices of files below a folder, and those on top of them: a kubelet puts one on each block device that
// a pod has. Those on top come last.
func loopsOf(dir string) []string {
	used := usedLoops()
	var found []string
	for _, l := range used {
		// When the namespace is gone, the kernel tells the path inside of its own file system. The name is cut, but not that early: the
		// sockets in the folder have no more room.
		if strings.HasPrefix(l.path, dir+"/") || strings.HasPrefix(l.name, dir+"/") {
			found = append(found, l.device)
		}
	}
	return append(found, onTop(used, found)...)
}

// onTop finds the devices whose file is another loop device.
func onTop(used []loop, below []string) []string {
	var found []string
	for _, device := range below {
		var stat unix.Stat_t
		if unix.Stat(device, &stat) != nil {
			continue
		}
		for _, l := range used {
			if l.volume == stat.Dev && l.inode == stat.Ino && !slices.Contains(found, l.device) {
				found = append(found, l.device)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return append(found, onTop(used, found)...)
}

// freeLoops waits until they are gone: one that is still held goes when it is let go of, and that takes the kernel a moment.
func freeLoops(dir string) error {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(look) {
		devices := loopsOf(dir)
		if len(devices) == 0 {
			return nil
		}
		if err := free(devices); err != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// free begins with the last one, since what is below another one is in use.
func free(devices []string) error {
	var failures []error
	for _, device := range slices.Backward(devices) {
		file, err := os.Open(device)
		if err == nil {
			err = unix.IoctlSetInt(int(file.Fd()), unix.LOOP_CLR_FD, 0)
			_ = file.Close() // Only read from.
		}
		if err != nil && !errors.Is(err, unix.ENXIO) {
			failures = append(failures, fmt.Errorf("freeing %s: %w", device, err))
		}
	}
	return errors.Join(failures...)
}

// mountedLoops lists the loop devices that are mounted as files below a folder.
func mountedLoops(table, dir string) []string {
	var found []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(MountsBelow(line, dir)) > 0 && strings.HasPrefix(fields[3], "/loop") {
			found = append(found, "/dev"+fields[3])
		}
	}
	return found
}
