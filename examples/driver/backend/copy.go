// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// copyTree copies a directory with everything below it. Owners are kept when
// the process may set them.
func copyTree(from, to string) error {
	// A folder gets its final mode and time last: a read-only one could not
	// be filled, and filling changes the time.
	type folder struct {
		path string
		info fs.FileInfo
	}
	var folders []folder
	err := filepath.WalkDir(from, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if info.IsDir() {
			folders = append(folders, folder{target, info})
			return os.Mkdir(target, 0o700)
		}
		return copyEntry(path, target, info)
	})
	if err != nil {
		return err
	}
	for _, f := range slices.Backward(folders) {
		if err := dress(f.path, f.info); err != nil {
			return err
		}
	}
	return nil
}

func copyEntry(from, to string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("copying %s: no system information", from)
	}
	switch info.Mode().Type() {
	case 0:
		if err := copyFile(from, to, info.Size()); err != nil {
			return err
		}
	case fs.ModeSymlink:
		link, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if err := os.Symlink(link, to); err != nil {
			return err
		}
		return chown(to, st)
	case fs.ModeSocket:
		// A socket is the process behind it, which a copy does not have.
		return nil
	default:
		if err := unix.Mknod(to, st.Mode, int(st.Rdev)); err != nil {
			return fmt.Errorf("copying %s: %w", from, err)
		}
	}
	return dress(to, info)
}

func chown(path string, st *syscall.Stat_t) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(path, int(st.Uid), int(st.Gid))
}

// dress gives a copy the owner, mode and time of its original. The owner comes
// first, because changing it clears the set-user-id bit.
func dress(path string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := chown(path, st); err != nil {
			return err
		}
	}
	if err := os.Chmod(path, info.Mode()); err != nil {
		return err
	}
	return os.Chtimes(path, time.Time{}, info.ModTime())
}

// fillBlock makes a sparse file of the given size that begins with the
// content of another, if there is another.
func fillBlock(path, from string, size int64) error {
	if from != "" {
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		if err := copyFile(from, path, info.Size()); err != nil {
			return err
		}
	} else {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return os.Truncate(path, size)
}

// copyFile shares the blocks of the original where the file system can, and
// otherwise copies what is not a hole.
func copyFile(from, to string, size int64) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	if err := copyExtents(in, out); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return out.Truncate(size)
}

func copyExtents(in, out *os.File) error {
	for at := int64(0); ; {
		start, err := in.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // only a hole is left
		}
		if err != nil {
			return err
		}
		end, err := in.Seek(start, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(out, start), io.NewSectionReader(in, start, end-start)); err != nil {
			return err
		}
		at = end
	}
}
