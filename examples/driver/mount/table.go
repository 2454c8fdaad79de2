// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// place is where some content is, whatever it is mounted at: a file system, and the path in that. What was removed while it was
// mounted still has its place.
type place struct {
	device string
	path   string
}

// mounted is one line of the kernel's table.
type mounted struct {
	id    string
	shows place
	point string
}

// IsShown says whether some content is mounted anywhere in this view of the machine.
func IsShown(content string) (bool, error) {
	all, err := table()
	if err != nil {
		return false, err
	}
	own, err := placeOf(all, content)
	return slices.ContainsFunc(all, func(m mounted) bool { return m.shows == own }), err
}

// Point is the one name of a path: what leads to it is followed, and it is not, like in the kernel's table.
func Point(path string) string {
	return filepath.Join(real(filepath.Dir(path)), filepath.Base(path))
}

// real follows links as far as there is anything.
func real(path string) string {
	if found, err := filepath.EvalSymlinks(path); err == nil {
		return found
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(real(parent), filepath.Base(path))
}

func table() ([]mounted, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []mounted
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			path := strings.TrimSuffix(plain(fields[3]), "//deleted")
			all = append(all, mounted{id: fields[0], shows: place{fields[2], path}, point: plain(fields[4])})
		}
	}
	return all, nil
}

// at lists what is mounted at a path, the topmost last.
func at(all []mounted, path string) []place {
	var found []place
	for _, m := range all {
		if m.point == path {
			found = append(found, m.shows)
		}
	}
	return found
}

// placeOf finds the place of a path; of one that is gone, where it was.
func placeOf(all []mounted, path string) (place, error) {
	path = real(path)
	there, stat := path, unix.Statx_t{}
	for {
		err := unix.Statx(unix.AT_FDCWD, there, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &stat)
		if err == nil {
			break
		}
		if there == filepath.Dir(there) {
			return place{}, fmt.Errorf("finding out which mount has %s: %w", path, err)
		}
		there = filepath.Dir(there)
	}
	for _, m := range all {
		if m.id != strconv.FormatUint(stat.Mnt_id, 10) {
			continue
		}
		inside, err := filepath.Rel(m.point, path)
		return place{m.shows.device, filepath.Join(m.shows.path, inside)}, err
	}
	return place{}, fmt.Errorf("finding out which mount has %s: the kernel's table does not tell", path)
}

// plain undoes the escapes of the kernel's table.
func plain(field string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(field)
}
