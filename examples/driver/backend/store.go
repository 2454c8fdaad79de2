// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	volumeKind   = "volumes"
	snapshotKind = "snapshots"
	tmpKind      = "tmp"
	trashKind    = "trash"
	recordFile   = "record.json"
	dataName     = "data"
)

// store is the directory. An object is <kind>/<id>/{record.json,data}; it
// comes to be, and ceases to be, with one rename, so that a kill at any moment
// leaves it whole or absent.
type store struct {
	dir  string
	sync bool
	lock *os.File
}

func openStore(dir string, sync bool) (*store, error) {
	if dir == "" {
		return nil, fmt.Errorf("%w: no directory given", ErrInvalid)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{volumeKind, snapshotKind, tmpKind, trashKind} {
		if err := os.MkdirAll(filepath.Join(dir, kind), 0o755); err != nil {
			return nil, err
		}
	}
	// The kernel tells of the data by this path.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// The kernel drops this lock when the process dies, however it dies.
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s, which another process may have open: %w", dir, err), lock.Close())
	}
	s := &store{dir: dir, sync: sync, lock: lock}
	for _, kind := range []string{tmpKind, trashKind} {
		if err := s.empty(kind); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

func (s *store) close() error { return s.lock.Close() }

func (s *store) path(kind, id string) string { return filepath.Join(s.dir, kind, id) }
func (s *store) data(kind, id string) string { return filepath.Join(s.dir, kind, id, dataName) }

func (s *store) empty(kind string) error {
	entries, err := os.ReadDir(filepath.Join(s.dir, kind))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.RemoveAll(s.path(kind, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// create fills the data of a new object and then makes it exist.
func (s *store) create(kind, id string, record any, fill func(data string) error) error {
	tmp := s.path(tmpKind, id)
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return err
	}
	err := fill(filepath.Join(tmp, dataName))
	if err == nil {
		err = s.write(filepath.Join(tmp, recordFile), record)
	}
	if err == nil {
		err = os.Rename(tmp, s.path(kind, id))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	if err := s.syncDir(filepath.Join(s.dir, kind)); err != nil {
		// The caller takes it for not made, so it must not come back with
		// the next start.
		return errors.Join(err, s.discard(kind, id))
	}
	return nil
}

// replace changes the record of an object that exists.
func (s *store) replace(kind, id string, record any) error {
	final := filepath.Join(s.path(kind, id), recordFile)
	if err := s.write(final+".new", record); err != nil {
		return err
	}
	if err := os.Rename(final+".new", final); err != nil {
		return err
	}
	return s.syncDir(s.path(kind, id))
}

// discard makes an object cease to be; its data may take longer to remove,
// and is removed at the next start if this process does not live to do it.
func (s *store) discard(kind, id string) error {
	trash := s.path(trashKind, id)
	if err := os.Rename(s.path(kind, id), trash); err != nil {
		return err
	}
	return errors.Join(s.syncDir(filepath.Join(s.dir, kind)), os.RemoveAll(trash))
}

func (s *store) write(path string, record any) (err error) {
	content, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(append(content, '\n')); err != nil {
		return err
	}
	if s.sync {
		return f.Sync()
	}
	return nil
}

func (s *store) syncDir(path string) (err error) {
	if !s.sync {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Sync()
}

// load reads all records of a kind. A folder whose record cannot be read is
// an error: guessing would hand out its name a second time.
func load[T any, P interface {
	*T
	identity() string
}](s *store, kind string) (map[string]*T, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, kind))
	if err != nil {
		return nil, err
	}
	found := make(map[string]*T, len(entries))
	for _, entry := range entries {
		path := filepath.Join(s.path(kind, entry.Name()), recordFile)
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		record := new(T)
		if err := json.Unmarshal(content, record); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if id := P(record).identity(); id != entry.Name() {
			return nil, fmt.Errorf("reading %s: it is the record of %q", path, id)
		}
		found[entry.Name()] = record
	}
	return found, nil
}

func (s *store) has(kind, id string) bool {
	_, err := os.Stat(filepath.Join(s.path(kind, id), recordFile))
	return err == nil
}
