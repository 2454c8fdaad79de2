// SPDX-License-Identifier: Apache-2.0

// Package mount owns how the content of a volume appears at a path: as a bind
// mount where the process may mount, as a symbolic link where it may not.
//
// It must not know volumes; it is given two paths.
//
// On the walk of NodeStageVolume and NodePublishVolume it stands last, after
// the use of the path has been recorded.
package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Mode is the way in which content appears at a path.
type Mode string

// The modes. A link cannot be read-only for a single path; drivers for
// production have no such mode.
const (
	Bind Mode = "bind"
	Link Mode = "link"
)

// Target is one appearance of some content.
type Target struct {
	// Source is a directory or a file.
	Source   string
	Path     string
	ReadOnly bool
}

var (
	// ErrLinked refuses a path that leads elsewhere: what is mounted there could not be found again by the path.
	ErrLinked = errors.New("it is a symbolic link")
	// ErrContent refuses a path with something of its own in it: Detach never removes that, so the path would stay for ever.
	ErrContent = errors.New("there is content already")
)

// Probe finds out, below dir, which mode works for this process.
func Probe(dir string) Mode {
	tmp, err := os.MkdirTemp(dir, "probe-")
	if err != nil {
		return Link
	}
	defer os.RemoveAll(tmp)
	source, path := filepath.Join(tmp, "source"), filepath.Join(tmp, "path")
	if os.Mkdir(source, 0o700) != nil {
		return Link
	}
	if Bind.Attach(Target{Source: source, Path: path}) != nil {
		return Link
	}
	if Detach(path) != nil {
		return Link
	}
	return Bind
}

// Attach makes the content appear; the parent of the path must exist. When it
// is there already, nothing is done.
func (m Mode) Attach(t Target) error {
	if m == Link {
		return attachLink(t)
	}
	mounted, err := IsMounted(t.Path)
	if err != nil {
		return err
	}
	if mounted {
		err = t.isThere()
	} else if err = prepare(t); err == nil {
		err = unix.Mount(t.Source, t.Path, "", unix.MS_BIND, "")
	}
	if err != nil {
		return fmt.Errorf("binding %s to %s: %w", t.Source, t.Path, err)
	}
	if !t.ReadOnly {
		return nil
	}
	// Linux takes the read-only flag of a bind mount only in a second step,
	// which a process that was killed in between may owe.
	if err := unix.Mount("", t.Path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return errors.Join(fmt.Errorf("making %s read-only: %w", t.Path, err), Detach(t.Path))
	}
	return nil
}

// Check says why the content cannot appear at the path, before anything is done.
func (m Mode) Check(t Target) error {
	if m == Link {
		return nil
	}
	link, err := os.Readlink(t.Path)
	if err != nil || link == t.Source {
		// Either it is none, or it is from a time when only links could be made, and Attach replaces it.
		return nil
	}
	return fmt.Errorf("binding %s to %s: %w", t.Source, t.Path, ErrLinked)
}

// Vacant says why a path cannot be given over to some content: there is other content, and it is no mount.
func Vacant(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		// What is not there is made, or cannot be, which is told then.
		return nil
	}
	mounted, err := IsMounted(path)
	if err != nil || mounted {
		return err
	}
	taken := info.Mode().IsRegular() && info.Size() > 0
	if info.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		taken = len(entries) > 0
	}
	if taken {
		return fmt.Errorf("using %s: %w", path, ErrContent)
	}
	return nil
}

// isThere refuses to take something else for the content.
func (t Target) isThere() error {
	source, err := os.Stat(t.Source)
	if err != nil {
		return err
	}
	path, err := os.Stat(t.Path)
	if err != nil {
		return err
	}
	if !os.SameFile(source, path) {
		return fmt.Errorf("something else is mounted: %w", fs.ErrExist)
	}
	return nil
}

// prepare makes what the content is mounted on.
func prepare(t Target) error {
	info, err := os.Stat(t.Source)
	if err != nil {
		return err
	}
	if link, err := os.Readlink(t.Path); err == nil {
		if link != t.Source {
			return ErrLinked
		}
		if err := os.Remove(t.Path); err != nil {
			return err
		}
	}
	if info.IsDir() {
		err := os.Mkdir(t.Path, 0o750)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	// kubelet leaves a directory behind where an earlier publication failed.
	if info, err := os.Lstat(t.Path); err == nil && info.IsDir() {
		if err := os.Remove(t.Path); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(t.Path, os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func attachLink(t Target) error {
	if link, err := os.Readlink(t.Path); err == nil && link == t.Source {
		return nil
	}
	// Remove takes an empty directory or an old link, never content.
	if err := os.Remove(t.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(t.Source, t.Path)
}

// Detach makes the path vanish, in whichever mode it was made. A path that
// does not exist is no error; one with content of its own is refused.
func Detach(path string) error {
	if err := Unmount(path); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && info.Size() > 0 {
		return fmt.Errorf("removing %s: it is a file with content", path)
	}
	return os.Remove(path)
}

// Unmount takes away what is mounted at the path and leaves the path.
func Unmount(path string) error {
	for {
		mounted, err := IsMounted(path)
		if err != nil || !mounted {
			return err
		}
		if err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmounting %s: %w", path, err)
		}
	}
}
