// SPDX-License-Identifier: Apache-2.0

// Package mount owns how the content of a volume appears at a path: as a bind
// mount where the process may mount, as a symbolic link where it may not.
//
// It must not know volumes; it is given paths.
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
	// Covers is for a folder of the caller's, with what is in it.
	Covers bool
}

var (
	// ErrTaken refuses a path where something else is mounted.
	ErrTaken = fmt.Errorf("something else is mounted: %w", fs.ErrExist)
	// ErrLinked refuses a path that leads elsewhere: what is mounted there could not be found again by the path.
	ErrLinked = errors.New("it is a symbolic link")
	// ErrContent refuses a path with something of its own: Detach never removes that, so the path would stay for ever.
	ErrContent = errors.New("there is content already")
)

// Probe finds out, below dir, which mode works for this process.
func Probe(dir string) Mode {
	tmp, err := os.MkdirTemp(dir, "probe-")
	if err != nil {
		return Link
	}
	defer os.RemoveAll(tmp)
	t := Target{Source: filepath.Join(tmp, "source"), Path: filepath.Join(tmp, "path")}
	if os.Mkdir(t.Source, 0o700) != nil || Bind.Attach(t) != nil {
		return Link
	}
	// What is not found again could not be undone.
	if seen, err := Look(t.Path, []string{t.Source}); err != nil || seen != Mounted {
		_ = unix.Unmount(t.Path, unix.UMOUNT_NOFOLLOW)
		return Link
	}
	if Detach(t.Path, []string{t.Source}) != nil {
		return Link
	}
	return Bind
}

// Attach makes the content appear; the parent of the path must exist. When it
// is there already, nothing is done.
func (m Mode) Attach(t Target) error {
	seen, err := t.look()
	switch {
	case err != nil || seen == Mounted:
	case m == Link && seen == Nothing:
		err = t.link()
	case m == Bind:
		if err = t.prepare(); err == nil {
			err = unix.Mount(t.Source, t.Path, "", unix.MS_BIND, "")
		}
	}
	if err != nil {
		return fmt.Errorf("showing %s at %s: %w", t.Source, t.Path, err)
	}
	if m == Link || !t.ReadOnly {
		return nil
	}
	// Linux takes the read-only flag of a bind mount only in a second step,
	// which a process that was killed in between may owe.
	if err := restrict(t.Path); err != nil {
		return errors.Join(fmt.Errorf("making %s read-only: %w", t.Path, err), Detach(t.Path, []string{t.Source}))
	}
	return nil
}

// look refuses a path before anything is done.
func (t Target) look() (Presence, error) {
	seen, err := Look(t.Path, []string{t.Source})
	if err != nil {
		return seen, err
	}
	switch seen {
	case Foreign, Covered:
		return seen, ErrTaken
	case Elsewhere:
		return seen, ErrLinked
	case Nothing:
		return seen, t.isVacant()
	default:
		return seen, nil
	}
}

// isVacant refuses whatever could not be given up again. An empty file is left by a publication of a file that was killed.
func (t Target) isVacant() error {
	source, err := os.Stat(t.Source)
	if err != nil {
		return err
	}
	info, err := os.Lstat(t.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir() && t.Covers:
		return nil
	case info.IsDir():
		if entries, err := os.ReadDir(t.Path); err != nil || len(entries) == 0 {
			return err
		}
	case info.Mode().IsRegular() && info.Size() == 0 && !source.IsDir():
		return nil
	}
	return ErrContent
}

// prepare makes what the content is mounted on.
func (t Target) prepare() error {
	info, err := os.Stat(t.Source)
	if err != nil {
		return err
	}
	if _, err := os.Readlink(t.Path); err == nil {
		// It is ours, from a time when only links could be made.
		if err := os.Remove(t.Path); err != nil {
			return err
		}
	}
	if info.IsDir() {
		err = os.Mkdir(t.Path, 0o750)
	} else {
		err = t.prepareFile()
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// prepareFile never opens what is there: a pipe would wait for ever for somebody at its other end.
func (t Target) prepareFile() error {
	// kubelet leaves a directory behind where an earlier publication failed.
	if info, err := os.Lstat(t.Path); err == nil && info.IsDir() {
		if err := os.Remove(t.Path); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(t.Path, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func (t Target) link() error {
	// An empty directory or file, as was found: Remove takes no directory with content.
	if err := os.Remove(t.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(t.Source, t.Path)
}

// stNoSymFollow is how the kernel tells of MS_NOSYMFOLLOW.
const stNoSymFollow = 0x2000

// restrict makes a mount read-only and lets it keep its other restrictions, which the kernel takes away unless they are said again.
func restrict(path string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return err
	}
	flags := uintptr(unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY)
	for is, set := range map[int64]uintptr{
		unix.ST_NOSUID: unix.MS_NOSUID, unix.ST_NODEV: unix.MS_NODEV, unix.ST_NOEXEC: unix.MS_NOEXEC, stNoSymFollow: unix.MS_NOSYMFOLLOW,
		unix.ST_NOATIME: unix.MS_NOATIME, unix.ST_NODIRATIME: unix.MS_NODIRATIME, unix.ST_RELATIME: unix.MS_RELATIME,
	} {
		if int64(stat.Flags)&is != 0 {
			flags |= set
		}
	}
	return unix.Mount("", path, "", flags, "")
}

// Detach makes the content vanish from the path, in whichever mode it was made to appear, and then the path. A path that
// does not exist is no error; one with content of its own is refused, and what others have put there stays.
func Detach(path string, own []string) error {
	seen, err := unmount(path, own)
	if err != nil {
		return err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case seen == Linked, seen == Nothing && info.IsDir(), seen == Nothing && info.Mode().IsRegular() && info.Size() == 0:
		return os.Remove(path)
	case seen == Nothing && info.Mode().IsRegular():
		return fmt.Errorf("removing %s: it is a file with content", path)
	}
	return nil
}

// Unmount takes away the content that is mounted at the path, and leaves the path.
func Unmount(path string, own []string) error {
	_, err := unmount(path, own)
	return err
}

// unmount tells what is at the path then.
func unmount(path string, own []string) (Presence, error) {
	for {
		seen, err := Look(path, own)
		switch {
		case err != nil:
			return seen, err
		case seen == Covered:
			return seen, fmt.Errorf("unmounting %s: %w on top", path, ErrTaken)
		case seen != Mounted:
			return seen, nil
		}
		if err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); err != nil {
			return seen, fmt.Errorf("unmounting %s: %w", path, err)
		}
	}
}
