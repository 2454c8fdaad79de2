// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// spot is a name in a directory of the copy, which nobody else can reach before it is whole.
type spot struct {
	dir  int
	name string
}

// copyTree copies a directory with everything below it. Owners are kept when
// the process may set them.
func copyTree(from, to string) error {
	root, err := look(unix.AT_FDCWD, from)
	if err != nil {
		return err
	}
	defer root.close()
	if root.kind() != unix.S_IFDIR {
		return fmt.Errorf("copying %s: %w", from, unix.ENOTDIR)
	}
	return copyDirectory(root, spot{dir: unix.AT_FDCWD, name: to})
}

func copyDirectory(from original, to spot) error {
	if err := unix.Mkdirat(to.dir, to.name, 0o700); err != nil {
		return fmt.Errorf("making directory %s: %w", to.name, err)
	}
	made, err := look(to.dir, to.name)
	if err != nil {
		return err
	}
	defer made.close()
	err = from.each(func(name string, entry original) error {
		if err := copyEntry(entry, spot{dir: made.fd, name: name}); err != nil {
			return fmt.Errorf("copying %s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// A folder gets its final mode and time last: a read-only one could not
	// be filled, and filling changes the time.
	return to.dress(from)
}

func copyEntry(from original, to spot) error {
	switch from.kind() {
	case unix.S_IFDIR:
		return copyDirectory(from, to)
	case unix.S_IFREG:
		if err := copyRegular(from, to); err != nil {
			return err
		}
	case unix.S_IFLNK:
		link, err := from.target()
		if err != nil {
			return err
		}
		if err := unix.Symlinkat(link, to.dir, to.name); err != nil {
			return err
		}
		return to.chown(from)
	case unix.S_IFSOCK:
		// A socket is the process behind it, which a copy does not have.
		return nil
	default:
		if err := unix.Mknodat(to.dir, to.name, from.stat.Mode, int(from.stat.Rdev)); err != nil {
			return err
		}
	}
	return to.dress(from)
}

func copyRegular(from original, to spot) (err error) {
	in, err := from.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	fd, err := unix.Openat(to.dir, to.name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(fd), to.name)
	defer func() { err = errors.Join(err, out.Close()) }()
	return copyContent(in, out, from.stat.Size)
}

func (s spot) chown(from original) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return unix.Fchownat(s.dir, s.name, int(from.stat.Uid), int(from.stat.Gid), unix.AT_SYMLINK_NOFOLLOW)
}

// dress gives a copy the owner, mode and time of its original. The owner comes
// first, because changing it clears the set-user-id bit.
func (s spot) dress(from original) error {
	if err := s.chown(from); err != nil {
		return err
	}
	if err := unix.Fchmodat(s.dir, s.name, from.stat.Mode&0o7777, 0); err != nil {
		return err
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, from.stat.Mtim}
	return unix.UtimesNanoAt(s.dir, s.name, times, unix.AT_SYMLINK_NOFOLLOW)
}

// fillBlock makes a sparse file of the given size that begins with the
// content of another, if there is another.
func fillBlock(path, from string, size int64) (err error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if from != "" {
		if err := copyImage(from, out); err != nil {
			return fmt.Errorf("copying %s: %w", from, err)
		}
	}
	return out.Truncate(size)
}

func copyImage(from string, out *os.File) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	return copyContent(in, out, info.Size())
}

// copyContent shares the blocks of the original where the file system can, and
// otherwise copies what is not a hole.
func copyContent(in, out *os.File, size int64) error {
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	if err := copyExtents(in, out, size); err != nil {
		return err
	}
	return out.Truncate(size)
}

// copyExtents ends at the size that the file had at first: one that is being
// written to might else grow as fast as it is read.
func copyExtents(in, out *os.File, size int64) error {
	for at := int64(0); at < size; {
		start, err := in.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) || err == nil && start >= size {
			return nil // only a hole is left
		}
		if err != nil {
			return err
		}
		end, err := in.Seek(start, unix.SEEK_HOLE)
		if errors.Is(err, unix.ENXIO) {
			return nil // it became shorter
		}
		if err != nil {
			return err
		}
		end = min(end, size)
		if _, err := io.Copy(io.NewOffsetWriter(out, start), io.NewSectionReader(in, start, end-start)); err != nil {
			return err
		}
		at = end
	}
	return nil
}
