// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/csi-tandem/csi-tandem/test/node/cgroup"
)

// mark is a file that says what a run may leave behind. Its lock is the run's: the kernel lifts it when that dies, and
// then the next one cleans up.
type mark struct {
	// Group is the name of the cgroups, Dir the folder of the nodes and Remove the one that goes with them.
	Group  string `json:"group"`
	Dir    string `json:"dir"`
	Remove string `json:"remove"`

	path string
	file *os.File
}

func markDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w", err)
	}
	return filepath.Join(cache, "csi-tandem", "machines"), nil
}

func newMark(dir, remove string) (*mark, error) {
	folder, err := markDir()
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("marking what is started: %w", err)
	}
	file, err := os.CreateTemp(folder, "new-")
	if err != nil {
		return nil, fmt.Errorf("marking what is started: %w", err)
	}
	m := &mark{Dir: dir, Remove: remove, file: file, path: filepath.Join(folder, strings.TrimPrefix(filepath.Base(file.Name()), "new-")+".json")}
	m.Group = "csi-tandem-" + strings.TrimSuffix(filepath.Base(m.path), ".json")
	content, err := json.Marshal(m)
	if err == nil {
		_, err = file.Write(content)
	}
	if err == nil {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		// Whoever sees it under its name sees it whole and locked.
		err = os.Rename(file.Name(), m.path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("marking what is started: %w", err), file.Close(), os.Remove(file.Name()))
	}
	return m, nil
}

func (m *mark) remove() error {
	if err := errors.Join(os.Remove(m.path), m.file.Close()); err != nil {
		return fmt.Errorf("removing the mark of the nodes: %w", err)
	}
	return nil
}

// Sweep removes what runs that were killed have left: processes, cgroups, loop devices and folders.
func Sweep(out io.Writer) error {
	folder, err := markDir()
	if err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return err
	}
	var failures []error
	for _, path := range paths {
		failures = append(failures, sweep(path, out))
	}
	return errors.Join(failures...)
}

func sweep(path string, out io.Writer) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		// Its run lives.
		return file.Close()
	}
	m := &mark{path: path, file: file}
	if err := json.NewDecoder(file).Decode(m); err != nil || m.Group == "" || !filepath.IsAbs(m.Dir) || !filepath.IsAbs(m.Remove) {
		return errors.Join(fmt.Errorf("%s does not say what was left", path), err, file.Close())
	}
	fmt.Fprintf(out, "a run was killed and has left %s: removing that\n", m.Remove)
	failures := []error{cgroup.Kill(m.Group, endPatience), cgroup.Remove(m.Group), freeLoops(m.Remove), left(m.Group, m.Dir, m.Remove)}
	if err := errors.Join(failures...); err != nil {
		// Nothing is removed below what may still be mounted or in use.
		return errors.Join(err, file.Close())
	}
	return errors.Join(os.RemoveAll(m.Remove), m.remove())
}

// left is an error that names everything of a machine that is still there: nobody sees it but whoever looks for it.
func left(group, dir, remove string) error {
	var found []string
	groups, err := cgroup.Left(group)
	if err != nil {
		return err
	}
	for _, path := range groups {
		found = append(found, "cgroup "+path)
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for _, point := range mountsBelow(string(table), dir) {
		found = append(found, "mount "+point)
	}
	for _, device := range loopsOf(remove) {
		found = append(found, "loop device "+device)
	}
	for _, process := range processesOf(dir) {
		found = append(found, "process "+process)
	}
	if len(found) > 0 {
		return fmt.Errorf("it is still there: %s", strings.Join(found, ", "))
	}
	return nil
}

// processesOf finds processes whose program or arguments speak of a folder.
func processesOf(dir string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		id := filepath.Base(filepath.Dir(file))
		if err == nil && strings.Contains(string(content), dir+"/") && id != fmt.Sprint(os.Getpid()) {
			found = append(found, id+" ("+strings.TrimSpace(strings.ReplaceAll(string(content), "\x00", " "))+")")
		}
	}
	return found
}
