// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"os"
	"path/filepath"
	"strings"
)

// IsMounted says whether the path is a mount point, which for a bind mount
// only the kernel's table tells.
func IsMounted(path string) (bool, error) {
	found, err := at(path)
	return len(found) > 0, err
}

// Shows says whether the path, as a mount point or as a link, shows content whose own path has this end. The content itself
// may be gone. Of a device the table has only the name, so that every loop device is taken for it.
func Shows(path, end string) (bool, error) {
	if link, err := os.Readlink(path); err == nil {
		return strings.HasSuffix(link, end), nil
	}
	found, err := at(path)
	if err != nil || len(found) == 0 {
		return false, err
	}
	top := strings.TrimSuffix(found[len(found)-1], "//deleted")
	return strings.HasSuffix(top, end) || strings.HasPrefix(filepath.Base(top), "loop"), nil
}

// at lists what is mounted at a path, each as the path that it has in its own file system, the topmost last.
func at(path string) ([]string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// The table has real paths; the last element must not be followed.
	if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(parent, filepath.Base(path))
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 && plain(fields[4]) == path {
			found = append(found, plain(fields[3]))
		}
	}
	return found, nil
}

// plain undoes the escapes of the kernel's table.
func plain(field string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(field)
}
