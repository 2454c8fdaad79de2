// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The controllers without which a kubelet does not start or a container cannot be made. With version 1 devices are a controller,
// with version 2 they are not.
var (
	neededFirst  = []string{"cpu", "cpuacct", "cpuset", "devices", "memory"}
	neededSecond = []string{"cpu", "memory", "pids"}
)

// wanted are the controllers of version 2 that a kubelet asks for in the group of its pods if the root has them.
var wanted = []string{"cpu", "cpuset", "hugetlb", "memory", "pids"}

// Probe tells why groups for nodes could not be made here, with what helps. It leaves nothing.
func Probe() error {
	all, err := Find()
	if err != nil {
		return err
	}
	return probe(all)
}

func probe(all []Hierarchy) error {
	for _, h := range all {
		path, err := os.MkdirTemp(h.Path(""), "csi-tandem-probe-")
		if err != nil {
			return fmt.Errorf("making a cgroup: %w", err)
		}
		if h.IsUnified() {
			err = h.passesOn(path)
		}
		if err := errors.Join(err, os.Remove(path)); err != nil {
			return err
		}
	}
	if all[0].IsUnified() {
		return nil
	}
	lacking := slices.DeleteFunc(slices.Clone(neededFirst), func(c string) bool {
		return slices.ContainsFunc(all, func(h Hierarchy) bool { return h.has(c) })
	})
	if len(lacking) > 0 {
		return fmt.Errorf("no cgroups (version 1) are mounted for %s", strings.Join(lacking, ", "))
	}
	return nil
}

// passesOn looks which controllers a new group has got. More are not switched on here: that would be for all of the machine, and stay.
func (h Hierarchy) passesOn(group string) error {
	given, err := readControllers(group)
	if err != nil {
		return err
	}
	lacking := slices.DeleteFunc(slices.Clone(neededSecond), func(c string) bool { return slices.Contains(given, c) })
	if len(lacking) > 0 {
		return fmt.Errorf("the cgroups (version 2) do not pass on %s; where %s/cgroup.controllers has them: echo '+%s' > %[2]s/cgroup.subtree_control, "+
			"in a container after all its processes have been moved into a group below", strings.Join(lacking, ", "), h.Mount, strings.Join(lacking, " +"))
	}
	return nil
}

func readControllers(group string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return nil, fmt.Errorf("reading the controllers: %w", err)
	}
	return strings.Fields(string(content)), nil
}

// Delegate lets groups below root have the controllers that root has. This process is in root, and a group with processes of its own
// passes no controllers on, so it moves into a group below first.
// https://docs.kernel.org/admin-guide/cgroup-v2.html#no-internal-process-constraint
func Delegate(root, leaf string) error {
	inner := filepath.Join(root, leaf)
	err := os.MkdirAll(inner, 0o755)
	if err == nil {
		// Zero is whoever writes it.
		err = os.WriteFile(filepath.Join(inner, "cgroup.procs"), []byte("0"), 0o644)
	}
	if err != nil {
		return fmt.Errorf("leaving the root of the cgroups: %w", err)
	}
	all, err := readControllers(root)
	if err != nil {
		return err
	}
	for _, c := range all {
		// A kubelet does not start without those that it wants; any other is a bonus.
		if err := passOn(root, c); err != nil && slices.Contains(wanted, c) {
			return fmt.Errorf("passing controller %s on: %w", c, err)
		}
	}
	return nil
}

func passOn(group, controller string) error {
	file, err := os.OpenFile(filepath.Join(group, "cgroup.subtree_control"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString("+" + controller + "\n")
	return errors.Join(err, file.Close())
}
