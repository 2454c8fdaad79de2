// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/csi-tandem/csi-tandem/test/node/cgroup"
)

// packages are where Debian has what is looked for.
const packages = "apt-get install gcc libc6-dev pkg-config libseccomp-dev busybox-static util-linux mount"

// Missing tells what real nodes want and this machine does not have, in words for people; none if they can run. What is made
// to find out is gone again.
func Missing() []string {
	if who := foreign(); who != "" {
		return []string{who}
	}
	var missing []string
	add := func(format string, values ...any) { missing = append(missing, fmt.Sprintf(format, values...)) }
	kinds, err := os.ReadFile("/proc/filesystems")
	if held := canHold(); held != nil {
		add("this process may not make namespaces with mounts of their own: %v", held)
	} else if err != nil || !strings.Contains(string(kinds), "\toverlay\n") {
		add("the kernel has no overlay file system, or has not loaded it (modprobe overlay)")
	} else if at := strings.IndexAny(os.TempDir(), unusable); at >= 0 {
		add("the path of the folder for temporary files, %s, has a %q, at which the programs of a node would split it: set TMPDIR to another one", os.TempDir(), os.TempDir()[at:at+1])
	} else if err := canRun(os.TempDir()); err != nil {
		add("no program can be started in the folder for temporary files, %s (is it mounted with noexec?): set TMPDIR to another one: %v", os.TempDir(), err)
	} else if err := canLayer(os.TempDir()); err != nil {
		add("the folder for temporary files, %s, cannot have the layers of containers (overlay): set TMPDIR to one on another file system: %v", os.TempDir(), err)
	}
	if err := cgroup.Probe(); err != nil {
		add("there are no cgroups for nodes: %v", err)
	}
	if err := checkRoom(filepath.Join(os.TempDir(), "tandem-0123456789", "n"), []string{"worker-1"}); err != nil {
		add("%v", err)
	}
	if programs := programsMissing(); len(programs) > 0 {
		add("there is no %s (on Debian: %s)", strings.Join(programs, ", no "), packages)
	}
	return missing
}

// unusable are the characters that overlay, containerd's settings or a list of paths give a meaning to.
const unusable = `:,\'`

// canRun starts something in the folder, as is done with what is compiled for a run.
func canRun(temporary string) error {
	dir, err := os.MkdirTemp(temporary, "tandem-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// The shell writes it: what we write ourselves may be open still in a process that is being started meanwhile, and is refused then.
	cmd := exec.Command("sh", "-c", `printf '#!/bin/sh\n' > script && chmod 700 script && exec ./script`)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w %s", err, bytes.TrimSpace(said))
	}
	return nil
}

// foreign says who this is if it is nobody who could have real nodes.
func foreign() string {
	if runtime.GOOS != "linux" {
		return "real nodes need Linux, and this is " + runtime.GOOS
	}
	if os.Geteuid() != 0 {
		return fmt.Sprintf("real nodes need root, and this is user %d", os.Geteuid())
	}
	if users, err := os.ReadFile("/proc/self/uid_map"); err == nil && !isOfMachine(string(users)) {
		return "real nodes need root of this machine, and this is root of a user namespace"
	}
	return ""
}

func programsMissing() []string {
	var programs []string
	for _, name := range []string{"nsenter", "losetup", "mount", "umount"} {
		if _, err := exec.LookPath(name); err != nil {
			programs = append(programs, name)
		}
	}
	if _, err := findBusybox(); err != nil {
		programs = append(programs, "static busybox")
	}
	if !isAllBuilt() {
		programs = append(programs, compilerMissing()...)
	}
	return programs
}

// compilerMissing looks for what runc is compiled with.
func compilerMissing() []string {
	var missing []string
	if _, err := exec.LookPath("gcc"); err != nil {
		missing = append(missing, "gcc")
	}
	if _, err := exec.LookPath("pkg-config"); err != nil {
		missing = append(missing, "pkg-config")
	} else if exec.Command("pkg-config", "--exists", "libseccomp").Run() != nil {
		missing = append(missing, "libseccomp with its headers")
	}
	return missing
}

// isOfMachine reads the table of a process's users: the namespace that a machine begins with has all of them. In any other, root may do
// much, and neither mount cgroups nor use loop devices.
func isOfMachine(users string) bool {
	return strings.Join(strings.Fields(users), " ") == "0 0 4294967295"
}

// canHold tries the namespaces that a machine begins with, and a mount that is seen in there only.
func canHold() error {
	cmd := exec.Command("sh", "-c", "mount --make-rprivate / && mount -t tmpfs csi-tandem-probe /run")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWCGROUP}
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w %s", err, bytes.TrimSpace(said))
	}
	return nil
}

// canLayer tries an overlay as containerd makes it: a folder that is on one itself, as in most containers, carries no other. It is
// mounted where nobody else sees it, and gone when the shell ends.
func canLayer(temporary string) error {
	dir, err := os.MkdirTemp(temporary, "tandem-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("sh", "-c", "mkdir l u w m && mount --make-rprivate / && mount -t overlay csi-tandem-probe -o lowerdir=l,upperdir=u,workdir=w m")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if said, err := cmd.CombinedOutput(); err != nil {
		first, _, _ := bytes.Cut(bytes.TrimSpace(said), []byte("\n"))
		return fmt.Errorf("%w %s", err, first)
	}
	return nil
}

// findBusybox wants one that needs nothing beside it: it is all there is in the image.
func findBusybox() (string, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return "", err
	}
	file, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return "", fmt.Errorf("%s is linked dynamically", path)
		}
	}
	return path, nil
}
