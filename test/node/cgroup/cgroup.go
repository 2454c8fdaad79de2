// SPDX-License-Identifier: Apache-2.0

// Package cgroup owns a folder of our own in every cgroup hierarchy of this machine, of version 1 or 2: it is made below
// the group that we are in, filled with processes, and found by its name, emptied and removed again, wherever it is: whoever
// cleans up after a run that was killed may have begun in another group than that run.
//
// It must not know what the processes are.
//
// It stands outside the walks, below the real nodes of end-to-end tests.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Hierarchy is one tree of groups.
type Hierarchy struct {
	// Mount is where its root is.
	Mount string
	// Options are what a mount of version 1 is told, such as "memory"; none for version 2.
	Options string
	// own is the group in which this process is.
	own string
}

// IsUnified is true for version 2.
func (h Hierarchy) IsUnified() bool { return h.Options == "" }

// Path is the folder of a group of ours.
func (h Hierarchy) Path(name string) string { return filepath.Join(h.Mount, h.own, name) }

// Find lists the hierarchies: those of version 1 if memory is counted there, else the one of version 2.
func Find() ([]Hierarchy, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("finding cgroups: %w", err)
	}
	member, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("finding cgroups: %w", err)
	}
	found := parse(string(table), string(member))
	if len(found) == 0 {
		return nil, errors.New("finding cgroups: none are mounted")
	}
	return found, nil
}

func parse(table, member string) []Hierarchy {
	own := map[string]string{}
	for line := range strings.Lines(member) {
		if fields := strings.SplitN(strings.TrimSpace(line), ":", 3); len(fields) == 3 {
			own[fields[1]] = fields[2]
		}
	}
	var first, second []Hierarchy
	for line := range strings.Lines(table) {
		before, after, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		// A mount of a part of the tree is somebody's view of it.
		if !ok || len(fields) < 5 || len(kind) < 3 || fields[3] != "/" {
			continue
		}
		switch kind[0] {
		case "cgroup2":
			// Groups with processes of their own pass no controllers on, and the one that we are in has us. The root may do both.
			second = append(second, Hierarchy{Mount: fields[4], own: "/"})
		case "cgroup":
			options := controllers(kind[2], own)
			if options != "" {
				first = append(first, Hierarchy{Mount: fields[4], Options: options, own: own[options]})
			}
		}
	}
	return choose(first, second)
}

// choose looks where memory is: some mount one controller of version 1, for the network mostly, beside version 2 that has all others.
func choose(first, second []Hierarchy) []Hierarchy {
	hasMemory := slices.ContainsFunc(first, func(h Hierarchy) bool { return h.has("memory") })
	if hasMemory || len(second) == 0 {
		return first
	}
	return second[:1]
}

// has says whether a hierarchy of version 1 is a controller's.
func (h Hierarchy) has(controller string) bool {
	return slices.Contains(strings.Split(h.Options, ","), controller)
}

// controllers finds the key of the membership table that belongs to a mount's options.
func controllers(options string, own map[string]string) string {
	given := strings.Split(options, ",")
	for key := range own {
		if key != "" && !slices.ContainsFunc(strings.Split(key, ","), func(c string) bool { return !slices.Contains(given, c) }) {
			return key
		}
	}
	return ""
}

// Make makes a group in every hierarchy.
func Make(name string) error {
	all, err := Find()
	if err != nil {
		return err
	}
	for _, h := range all {
		if err := h.make(name); err != nil {
			return fmt.Errorf("making cgroup %s: %w", h.Path(name), err)
		}
	}
	return nil
}

// Join makes a group and moves this process into it.
func Join(name string) error {
	if err := Make(name); err != nil {
		return err
	}
	all, err := Find()
	if err != nil {
		return err
	}
	for _, h := range all {
		// Zero is whoever writes it.
		if err := os.WriteFile(filepath.Join(h.Path(name), "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("joining cgroup %s: %w", h.Path(name), err)
		}
	}
	return nil
}

// make gives each new group the processors and memory of the one above, without which cpuset takes no process.
func (h Hierarchy) make(name string) error {
	dir := filepath.Join(h.Mount, h.own)
	for part := range strings.SplitSeq(name, "/") {
		above := dir
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if h.Options != "cpuset" {
			continue
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			content, err := os.ReadFile(filepath.Join(above, file))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), content, 0)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Left lists the folders of a group that are there. Its name has to be one that nobody else gives: it is looked for in whole hierarchies.
func Left(name string) ([]string, error) {
	all, err := Find()
	if err != nil {
		return nil, err
	}
	var left []string
	for _, h := range all {
		left = append(left, h.search(name)...)
	}
	return left, nil
}

// search finds a group wherever it was made. Groups of others go while this looks, which is no error.
func (h Hierarchy) search(name string) []string {
	first, below, _ := strings.Cut(name, "/")
	var found []string
	_ = filepath.WalkDir(h.Mount, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || entry.Name() != first || path == h.Mount {
			return nil
		}
		path = filepath.Join(path, below)
		if _, err := os.Stat(path); err == nil {
			found = append(found, path)
		}
		return fs.SkipDir
	})
	return found
}

// Kill ends everything that is in a group or below it, and waits until it is gone. No such group is no error.
func Kill(name string, patience time.Duration) error {
	groups, err := Left(name)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left := 0
		for _, group := range groups {
			for _, id := range members(group) {
				left++
				_ = unix.Kill(id, unix.SIGKILL) // It may have ended by itself meanwhile.
			}
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("ending what is in cgroup %s: %d processes are still there", name, left)
		}
	}
}

// members lists the processes in a group and below it.
func members(group string) []int {
	var ids []int
	_ = filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		// Groups go while this looks.
		if err != nil || !entry.IsDir() {
			return nil
		}
		content, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for line := range strings.FieldsSeq(string(content)) {
			var id int
			if _, err := fmt.Sscan(line, &id); err == nil && id > 0 {
				ids = append(ids, id)
			}
		}
		return nil
	})
	return ids
}

// Remove takes a group of which nobody is left out of every hierarchy.
func Remove(name string) error {
	groups, err := Left(name)
	if err != nil {
		return err
	}
	var failures []error
	for _, group := range groups {
		failures = append(failures, remove(group))
	}
	return errors.Join(failures...)
}

func remove(group string) error {
	var dirs []string
	_ = filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	var failures []error
	for _, dir := range slices.Backward(dirs) {
		// The kernel takes a moment to let go of processes that have ended.
		err := unix.Rmdir(dir)
		for deadline := time.Now().Add(5 * time.Second); errors.Is(err, unix.EBUSY) && time.Now().Before(deadline); err = unix.Rmdir(dir) {
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failures = append(failures, fmt.Errorf("removing cgroup %s: %w", dir, err))
		}
	}
	return errors.Join(failures...)
}
