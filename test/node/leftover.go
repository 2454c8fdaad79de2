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
	"slices"
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
	cache, err := cacheDir()
	return filepath.Join(cache, "machines"), err
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

// remove gives the lock back last: whoever gets it then sees that the mark is gone.
func (m *mark) remove() error {
	err := os.Remove(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err := errors.Join(err, m.file.Close()); err != nil {
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
	return sweepOpen(path, file, out)
}

// sweepOpen does what is to be done about a mark. Its run may have ended since it was opened, and removed it, which lets us have the
// lock: only a mark that is there under its name with nobody who has its lock is one of a run that was killed.
func sweepOpen(path string, file *os.File, out io.Writer) error {
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		// Its run lives.
		return file.Close()
	}
	if isThere, err := isAt(path, file); err != nil || !isThere {
		return errors.Join(err, file.Close())
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
	for _, process := range processesOf(dir, remove) {
		found = append(found, "process "+process)
	}
	if len(found) > 0 {
		return fmt.Errorf("it is still there: %s", strings.Join(found, ", "))
	}
	return nil
}

// isAt says whether a file that is open is the one that has this name.
func isAt(path string, file *os.File) (bool, error) {
	named, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	opened, err := file.Stat()
	return err == nil && os.SameFile(named, opened), err
}

// processesOf finds processes whose arguments speak of a folder and whose program is one of those that were compiled for a run, which
// are in the cache or in a folder of the run. Who looks at a log is nobody of ours; what a pod runs is found by its cgroup.
func processesOf(dir, remove string) []string {
	ours := []string{resolved(remove)}
	if cache, err := cacheDir(); err == nil {
		ours = append(ours, cache)
	}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(content), dir+"/") {
			continue
		}
		process := filepath.Dir(file)
		program, err := os.Readlink(filepath.Join(process, "exe"))
		isOurs := err == nil && slices.ContainsFunc(ours, func(dir string) bool { return strings.HasPrefix(program, dir+"/") })
		if id := filepath.Base(process); isOurs && id != fmt.Sprint(os.Getpid()) {
			found = append(found, id+" ("+strings.TrimSpace(strings.ReplaceAll(string(content), "\x00", " "))+")")
		}
	}
	return found
}
