// SPDX-License-Identifier: Apache-2.0

// Package backend owns the storage itself: volumes are directories or sparse
// files, snapshots are copies of them, and every object is a folder whose
// record says what it is. It owns idempotency by name, the choice of a pool,
// the accounting of capacity, and what survives a kill.
//
// It must not know gRPC, the CSI messages, or anything about scripted faults;
// its requests are plain values and its errors are the ones in errors.go.
//
// On the walk of one CSI call it stands last: server translates the request,
// backend does the work and answers with a copy of the record.
package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/csi-tandem/csi-tandem/examples/driver/inflight"
)

// Options says where the backend lives and what it has to offer.
type Options struct {
	// Dir holds everything; it is created when missing.
	Dir string
	// Pools are the places where volumes can be put. None means one pool
	// without a segment and with DefaultPoolCapacity.
	Pools []Pool
	// MinimumSize is what smaller requests are raised to.
	MinimumSize int64
	// SnapshotReadyAfter is how long a new snapshot stays unready.
	SnapshotReadyAfter time.Duration
	// CopyAcross lets data of one pool be restored or cloned into another.
	CopyAcross bool
	// Sync forces records to the disk, which a power cut needs and a kill
	// does not.
	Sync bool
	// Now is the clock.
	Now func() time.Time
}

// Backend is safe for concurrent use.
type Backend struct {
	options Options
	store   *store
	busy    inflight.Table

	mu        sync.Mutex
	volumes   map[string]*Volume
	snapshots map[string]*Snapshot
	// volumeNames and snapshotNames lead from names to ids.
	volumeNames   map[string]string
	snapshotNames map[string]string
	// pins counts the copies that are being made of an object, which must not
	// vanish meanwhile.
	pins map[string]int
	// used is the room that is taken or promised, by the key of the segment.
	used   map[string]int64
	serial uint64
}

// Open loads the state in the directory and throws away what a kill left half
// made. Only one process at a time can have a directory open.
func Open(options Options) (*Backend, error) {
	if options.Now == nil {
		return nil, fmt.Errorf("opening backend: %w: no clock given", ErrInvalid)
	}
	if len(options.Pools) == 0 {
		options.Pools = []Pool{{Capacity: DefaultPoolCapacity}}
	}
	s, err := openStore(options.Dir, options.Sync)
	if err != nil {
		return nil, fmt.Errorf("opening backend: %w", err)
	}
	b := &Backend{
		options: options,
		store:   s,
		pins:    map[string]int{},
		used:    map[string]int64{},
	}
	if b.volumes, err = load[Volume](s, volumeKind); err == nil {
		b.snapshots, err = load[Snapshot](s, snapshotKind)
	}
	if err == nil {
		err = b.index()
	}
	if err != nil {
		return nil, fmt.Errorf("opening backend: %w", errors.Join(err, s.close()))
	}
	return b, nil
}

// index derives from the records what is looked up by name and by segment.
func (b *Backend) index() error {
	b.volumeNames, b.snapshotNames = map[string]string{}, map[string]string{}
	for id, v := range b.volumes {
		if other, taken := b.volumeNames[v.Name]; taken {
			return fmt.Errorf("%w: volumes %s and %s are both named %q", ErrInvalid, id, other, v.Name)
		}
		b.volumeNames[v.Name] = id
		b.used[v.Segment.Key()] += v.Size
	}
	for id, s := range b.snapshots {
		if other, taken := b.snapshotNames[s.Name]; taken {
			return fmt.Errorf("%w: snapshots %s and %s are both named %q", ErrInvalid, id, other, s.Name)
		}
		b.snapshotNames[s.Name] = id
		b.used[s.Segment.Key()] += s.Size
	}
	return nil
}

// Close lets another process open the directory.
func (b *Backend) Close() error {
	return b.store.close()
}

// DataPath is the directory (or the sparse file) with the content of a volume.
func (b *Backend) DataPath(id string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.volumes[id]; !ok {
		return "", fmt.Errorf("%w: volume %q", ErrNotFound, id)
	}
	return b.store.data(volumeKind, id), nil
}

// identify makes an id that cannot be derived from the name: an object that
// is deleted and made again under its old name is another object. The caller
// holds the lock.
func (b *Backend) identify(kind, name string) string {
	b.serial++
	seed := fmt.Sprintf("%s\x00%s\x00%d\x00%d\x00%d", kind, name, b.options.Now().UnixNano(), os.Getpid(), b.serial)
	sum := sha256.Sum256([]byte(seed))
	return kind[:3] + "-" + hex.EncodeToString(sum[:16])
}

// begin claims a name until the returned function is called.
func (b *Backend) begin(kind, name string) (func(), error) {
	done, ok := b.busy.Begin(kind + "/" + name)
	if !ok {
		return nil, fmt.Errorf("%w: %s %q", ErrBusy, kind, name)
	}
	return done, nil
}

// pin keeps an object from being deleted while it is copied. The caller holds
// the lock; the returned function takes it.
func (b *Backend) pin(id string) func() {
	b.pins[id]++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.pins[id]--; b.pins[id] <= 0 {
			delete(b.pins, id)
		}
	}
}
