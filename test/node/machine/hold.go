// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/csi-tandem/csi-tandem/test/node/cgroup"
)

// covered are folders to which kubelet and containerd write wherever they are told to keep their data. Inside they are
// empty and in memory, so that nothing of it reaches the real ones.
var covered = []string{"/run", "/var/log", "/var/lib", "/mnt"}

// hold furnishes the machine and stays. Mount and process namespaces are new already; whoever started us saw to that.
// shown are folders that are seen inside wherever they are.
func hold(group string, shown []string) error {
	if os.Getpid() != 1 {
		return fmt.Errorf("holding: this is process %d and not the first of its namespace", os.Getpid())
	}
	all, err := cgroup.Find()
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts to ourselves: %w", err)
	}
	if err := cgroup.Join(group); err != nil {
		return err
	}
	// From here on our group looks like the root.
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("making a cgroup namespace: %w", err)
	}
	for _, step := range []func() error{mountProc, func() error { return mountCgroups(all) }, func() error { return cover(shown) }, showSettings} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	reap()
	return nil
}

// settings are those of the kernel that a kubelet changes, with what it changes them to.
var settings = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// showSettings lets a kubelet see what it wants to see. It ends if it cannot have it, and really changing the settings
// would change those of the whole machine.
func showSettings() error {
	for name, value := range settings {
		source, path := filepath.Join("/run", strings.ReplaceAll(name, "/", "-")), filepath.Join("/proc/sys", name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		err := os.WriteFile(source, []byte(value+"\n"), 0o444)
		if err == nil {
			err = unix.Mount(source, path, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("showing %s for %s: %w", value, path, err)
		}
	}
	return nil
}

// mountProc shows the processes of the new namespace, and lets nobody change the kernel's settings.
func mountProc() error {
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	err := unix.Mount("/proc/sys", "/proc/sys", "", unix.MS_BIND, "")
	if err == nil {
		err = unix.Mount("", "/proc/sys", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	}
	if err != nil {
		return fmt.Errorf("protecting /proc/sys: %w", err)
	}
	return nil
}

const cgroupRoot = "/sys/fs/cgroup"

func mountCgroups(all []cgroup.Hierarchy) error {
	if all[0].IsUnified() {
		return mountUnified()
	}
	if err := unix.Mount("cgroup", cgroupRoot, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("covering %s: %w", cgroupRoot, err)
	}
	for _, h := range all {
		path, options := filepath.Join(cgroupRoot, filepath.Base(h.Mount)), h.Options
		if strings.HasPrefix(options, "name=") {
			options = "none," + options
		}
		err := os.Mkdir(path, 0o755)
		if err == nil {
			err = unix.Mount("cgroup", path, "cgroup", 0, options)
		}
		if err != nil {
			return fmt.Errorf("mounting cgroup %s: %w", h.Options, err)
		}
	}
	return nil
}

// mountUnified also leaves the root of version 2 to groups, which get controllers only from one without processes. The view of the
// whole machine goes first: the kernel refuses a second mount of the same file system at the same place.
func mountUnified() error {
	var err error
	for err == nil {
		err = unix.Unmount(cgroupRoot, unix.MNT_DETACH)
	}
	if !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmounting %s: %w", cgroupRoot, err)
	}
	if err := unix.Mount("cgroup2", cgroupRoot, "cgroup2", 0, ""); err != nil {
		return fmt.Errorf("mounting cgroup2: %w", err)
	}
	return cgroup.Delegate(cgroupRoot, "system")
}

// cover lays empty folders over what is covered, and lets what is to be seen be seen in them.
func cover(shown []string) error {
	held, err := holdCovered(shown)
	if err != nil {
		return err
	}
	for _, path := range covered {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if err := unix.Mount("tandem", path, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("covering %s: %w", path, err)
		}
	}
	for _, folder := range held {
		err := os.MkdirAll(folder.Name(), 0o755)
		if err == nil {
			err = unix.Mount(fmt.Sprintf("/proc/self/fd/%d", folder.Fd()), folder.Name(), "", unix.MS_BIND, "")
		}
		if err := errors.Join(err, folder.Close()); err != nil {
			return fmt.Errorf("showing %s: %w", folder.Name(), err)
		}
	}
	return os.MkdirAll("/var/lib/kubelet", 0o755)
}

// holdCovered opens those of the folders that will be covered: from then on they can be had by what is open only.
func holdCovered(shown []string) ([]*os.File, error) {
	var held []*os.File
	for _, path := range shown {
		path, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, fmt.Errorf("finding what is to be seen: %w", err)
		}
		if !isCovered(path) {
			continue
		}
		folder, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("opening what is to be seen: %w", err)
		}
		held = append(held, folder)
	}
	// One may be in another one.
	slices.SortFunc(held, func(a, b *os.File) int { return len(a.Name()) - len(b.Name()) })
	return held, nil
}

func isCovered(path string) bool {
	return slices.ContainsFunc(covered, func(place string) bool {
		if real, err := filepath.EvalSymlinks(place); err == nil {
			place = real
		}
		return strings.HasPrefix(path+"/", place+"/")
	})
}

// enter leaves the work of changing namespaces to nsenter, which has one thread.
func enter(process, group string, command []string) error {
	if err := cgroup.Join(group); err != nil {
		return err
	}
	tool, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	args := append([]string{tool, "--target", process, "--mount", "--pid", "--cgroup", "--"}, command...)
	return syscall.Exec(tool, args, os.Environ())
}
