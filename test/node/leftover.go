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

// Mark is a file that says what a run may leave behind. Its lock is the run's: the kernel lifts it when that dies, and
// then the next one cleans up.
type Mark struct {
	// Group is the name of the cgroups, Dir the folder of the nodes and Around the one that goes with them.
	Group  string `json:"group"`
	Dir    string `json:"dir"`
	Around string `json:"remove"`
	// Volume is the file system that has the folder, and Boot tells which life of the machine it is: with them a folder that is gone is
	// told from one that cannot be seen.
	Volume uint64 `json:"volume"`
	Boot   string `json:"boot"`

	path string
	file *os.File
	// isInUse is set while there may be something of the nodes.
	isInUse bool
}

func markDir() (string, error) {
	cache, err := cacheDir()
	return filepath.Join(cache, "machines"), err
}

// Announce marks a run that will have nodes. From now on the next run removes the folder around theirs if this one is killed.
func Announce(dir, around string) (*Mark, error) {
	folder, err := markDir()
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("marking what is started: %w", err)
	}
	volume, err := volumeOf(around)
	if err != nil {
		return nil, fmt.Errorf("marking what is started: %w", err)
	}
	file, err := os.CreateTemp(folder, "new-")
	if err != nil {
		return nil, fmt.Errorf("marking what is started: %w", err)
	}
	m := &Mark{
		Dir: dir, Around: around, Volume: volume, Boot: boot(), file: file,
		path: filepath.Join(folder, strings.TrimPrefix(filepath.Base(file.Name()), "new-")+".json"),
	}
	m.Group = groupOf(m.path)
	if err := m.write(); err != nil {
		return nil, errors.Join(fmt.Errorf("marking what is started: %w", err), file.Close(), os.Remove(file.Name()))
	}
	return m, nil
}

func (m *Mark) write() error {
	content, err := json.Marshal(m)
	if err == nil {
		_, err = m.file.Write(content)
	}
	if err == nil {
		// Or it may be empty after a power cut, whatever its name.
		err = m.file.Sync()
	}
	if err == nil {
		err = unix.Flock(int(m.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		// Whoever sees it under its name sees it whole and locked.
		err = os.Rename(m.file.Name(), m.path)
	}
	return err
}

func volumeOf(path string) (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return 0, fmt.Errorf("looking at %s: %w", path, err)
	}
	return stat.Dev, nil
}

func boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// groupOf names the cgroups of a run like its mark. They are looked for in the whole machine, so no other name is one of ours.
func groupOf(path string) string {
	return "csi-tandem-" + strings.TrimSuffix(filepath.Base(path), ".json")
}

// Erase is for a run that comes to its end by itself, and may remove or keep the folder as it likes. It gives the lock back last: whoever
// gets it then sees that the mark is gone. While something of the nodes is left, the mark stays, for the next run.
func (m *Mark) Erase() error {
	if m.isInUse {
		return nil
	}
	err := os.Remove(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	closed := m.file.Close()
	if errors.Is(closed, fs.ErrClosed) {
		closed = nil
	}
	if err := errors.Join(err, closed); err != nil {
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
	m := &Mark{path: path, file: file}
	if err := json.NewDecoder(file).Decode(m); err != nil || m.Group != groupOf(path) || !filepath.IsAbs(m.Dir) || !filepath.IsAbs(m.Around) {
		return sweepUnknown(&Mark{Group: groupOf(path), path: path, file: file}, out)
	}
	fmt.Fprintf(out, "a run was killed and has left %s: removing that\n", m.Around)
	// Its nodes may not have been there yet: whatever is below the folder counts.
	failures := []error{cgroup.Kill(m.Group, endPatience), cgroup.Remove(m.Group), freeLoops(m.Around), left(m.Group, m.Around, m.Around)}
	if err := errors.Join(failures...); err != nil {
		// Nothing is removed below what may still be mounted or in use.
		return errors.Join(err, file.Close())
	}
	if m.isHidden() {
		fmt.Fprintf(out, "%s is not seen from here: it stays for a run that sees it\n", m.Around)
		return file.Close()
	}
	return errors.Join(os.RemoveAll(m.Around), m.Erase())
}

// sweepUnknown is for a mark that says nothing, or not what its run wrote: only its name is to be trusted, and that is the name of cgroups.
// It goes then, or every run from now on would end here.
func sweepUnknown(m *Mark, out io.Writer) error {
	fmt.Fprintf(out, "%s does not say what a run has left: its processes and cgroups are removed, and a folder tandem-* may be left in the one for temporary files\n", m.path)
	if err := errors.Join(cgroup.Kill(m.Group, endPatience), cgroup.Remove(m.Group)); err != nil {
		return errors.Join(err, m.file.Close())
	}
	return m.Erase()
}

// isHidden says whether the folder may be there for others: it is not here, and neither is the file system that had it.
func (m *Mark) isHidden() bool {
	if _, err := os.Lstat(m.Around); err == nil || m.Boot != boot() {
		return false
	}
	volume, err := volumeOf(filepath.Dir(m.Around))
	return err != nil || volume != m.Volume
}

// left is an error that names everything of a machine that is still there: nobody sees it but whoever looks for it.
func left(group, dir, around string) error {
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
	for _, point := range MountsBelow(string(table), dir) {
		found = append(found, "mount "+point)
	}
	for _, device := range loopsOf(around) {
		found = append(found, "loop device "+device)
	}
	for _, process := range processesOf(dir, around) {
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
func processesOf(dir, around string) []string {
	ours := []string{resolved(around)}
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
