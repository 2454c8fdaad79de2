// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// maximumDepth bounds the descriptors that one walk holds, of which there is one or two for each level.
const maximumDepth = 1000

// original is one file of a volume. A pod may put another in its place at any moment: a link to what is the node's, or a
// pipe that blocks who opens it. So a file is first held by a descriptor that neither follows nor opens it (O_PATH), and all
// that is asked and read after that is of the file that is held, and not of its name.
type original struct {
	fd    int
	stat  unix.Stat_t
	depth int
}

// look holds an entry of a directory; the caller lets go of it with close.
func look(dir int, name string) (original, error) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return original{}, &fs.PathError{Op: "looking at", Path: name, Err: err}
	}
	o := original{fd: fd}
	if err := unix.Fstat(fd, &o.stat); err != nil {
		o.close()
		return original{}, &fs.PathError{Op: "looking at", Path: name, Err: err}
	}
	return o, nil
}

func (o original) close() { _ = unix.Close(o.fd) }

func (o original) kind() uint32 { return o.stat.Mode & unix.S_IFMT }

// open makes the descriptor one that reads. Only what is known to be a file or a directory may be opened.
func (o original) open() (*os.File, error) {
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", o.fd))
}

// target is where a symbolic link leads.
func (o original) target() (string, error) {
	for size := int64(256); ; size *= 2 {
		text := make([]byte, size)
		n, err := unix.Readlinkat(o.fd, "", text)
		if err != nil {
			return "", fmt.Errorf("reading a link: %w", err)
		}
		if int64(n) < size {
			return string(text[:n]), nil
		}
	}
}

// each visits the entries of a directory. One that goes meanwhile is left out, as it would be had it gone before.
func (o original) each(visit func(name string, entry original) error) error {
	if o.depth >= maximumDepth {
		return fmt.Errorf("%w: directories are nested deeper than %d", ErrInvalid, maximumDepth)
	}
	names, err := o.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		entry, err := look(o.fd, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		entry.depth = o.depth + 1
		err = visit(name, entry)
		entry.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (o original) names() ([]string, error) {
	dir, err := o.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close() // Only read from.
	names, err := dir.Readdirnames(-1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// A directory that changes while it is listed may tell a name twice.
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Usage is what a volume holds.
type Usage struct {
	Bytes  int64
	Inodes int64
}

// Usage adds up the files of a volume.
func (b *Backend) Usage(id string) (Usage, error) {
	path, err := b.DataPath(id)
	if err != nil {
		return Usage{}, err
	}
	root, err := look(unix.AT_FDCWD, path)
	if err != nil {
		return Usage{}, fmt.Errorf("measuring volume %q: %w", id, err)
	}
	defer root.close()
	var sum Usage
	if err := root.measure(&sum); err != nil {
		return Usage{}, fmt.Errorf("measuring volume %q: %w", id, err)
	}
	return sum, nil
}

func (o original) measure(sum *Usage) error {
	sum.Inodes++
	switch o.kind() {
	case unix.S_IFREG:
		sum.Bytes += o.stat.Size
	case unix.S_IFDIR:
		return o.each(func(_ string, entry original) error { return entry.measure(sum) })
	}
	return nil
}
