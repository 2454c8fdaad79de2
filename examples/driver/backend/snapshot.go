// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"maps"
	"slices"
)

// SnapshotRequest asks for a snapshot.
type SnapshotRequest struct {
	Name       string
	Volume     string
	Parameters map[string]string
}

// CreateSnapshot copies the volume as it is now, or finds the snapshot if it
// was made before. Like CreateVolume it does not give up half way.
func (b *Backend) CreateSnapshot(r SnapshotRequest) (Snapshot, error) {
	done, err := b.begin("snapshot", r.Name)
	if err != nil {
		return Snapshot{}, err
	}
	defer done()
	b.mu.Lock()
	if existing, ok := b.snapshots[b.snapshotNames[r.Name]]; ok {
		defer b.mu.Unlock()
		if existing.Volume != r.Volume {
			return Snapshot{}, fmt.Errorf("%w: snapshot %q is of volume %q", ErrConflict, r.Name, existing.Volume)
		}
		return existing.clone(), nil
	}
	s, unpin, err := b.planSnapshot(r)
	b.mu.Unlock()
	if err != nil {
		return Snapshot{}, err
	}
	defer unpin()
	from := b.store.data(volumeKind, r.Volume)
	err = b.store.create(snapshotKind, s.ID, s, func(data string) error {
		if s.Block {
			return fillBlock(data, from, s.Size)
		}
		return copyTree(from, data)
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.release(s.Segment, s.Size)
		return Snapshot{}, fmt.Errorf("creating snapshot %q: %w", r.Name, err)
	}
	b.snapshots[s.ID], b.snapshotNames[s.Name] = s, s.ID
	return s.clone(), nil
}

// planSnapshot decides everything about a new snapshot and takes its room. The
// caller holds the lock and must unpin the volume when the copy is there.
func (b *Backend) planSnapshot(r SnapshotRequest) (*Snapshot, func(), error) {
	v, ok := b.volumes[r.Volume]
	if !ok {
		return nil, nil, fmt.Errorf("%w: volume %q", ErrNotFound, r.Volume)
	}
	for _, pool := range b.options.Pools {
		// A snapshot is not a volume: only the room counts, not the largest
		// volume that the pool allows.
		if pool.Segment.Key() == v.Segment.Key() && v.Size > b.free(pool) {
			return nil, nil, fmt.Errorf("%w: %d bytes for a snapshot in {%s}", ErrExhausted, v.Size, v.Segment.Key())
		}
	}
	b.used[v.Segment.Key()] += v.Size
	now := b.options.Now().UTC()
	return &Snapshot{
		ID: b.identify("snapshot", r.Name), Name: r.Name, Volume: v.ID, Size: v.Size, Block: v.Block,
		Parameters: maps.Clone(r.Parameters), Segment: maps.Clone(v.Segment),
		Created: now, ReadyAt: now.Add(b.options.SnapshotReadyAfter),
	}, b.pin(v.ID), nil
}

// DeleteSnapshot removes a snapshot; one that does not exist is no error.
func (b *Backend) DeleteSnapshot(id string) error {
	b.mu.Lock()
	s, ok := b.snapshots[id]
	if !ok {
		b.mu.Unlock()
		return nil
	}
	if b.pins[id] > 0 {
		b.mu.Unlock()
		return fmt.Errorf("%w: snapshot %q is being restored", ErrBusy, id)
	}
	done, err := b.begin("snapshot", s.Name)
	if err != nil {
		b.mu.Unlock()
		return err
	}
	defer done()
	delete(b.snapshots, id)
	delete(b.snapshotNames, s.Name)
	b.mu.Unlock()
	err = b.store.discard(snapshotKind, id)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil && b.store.has(snapshotKind, id) {
		b.snapshots[id], b.snapshotNames[s.Name] = s, id
		return fmt.Errorf("deleting snapshot %q: %w", id, err)
	}
	b.release(s.Segment, s.Size)
	return nil
}

// Snapshot finds a snapshot by id.
func (b *Backend) Snapshot(id string) (Snapshot, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.snapshots[id]
	if !ok {
		return Snapshot{}, false
	}
	return s.clone(), true
}

// Snapshots lists all snapshots in the order of their ids.
func (b *Backend) Snapshots() []Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Snapshot, 0, len(b.snapshots))
	for _, id := range slices.Sorted(maps.Keys(b.snapshots)) {
		all = append(all, b.snapshots[id].clone())
	}
	return all
}

// Forget removes a volume or snapshot, found by id or by name, as if it had
// never been: a volume even while it is in use.
func (b *Backend) Forget(idOrName string) error {
	b.mu.Lock()
	volume, snapshot := idOrName, idOrName
	if id, ok := b.volumeNames[idOrName]; ok {
		volume = id
	}
	if id, ok := b.snapshotNames[idOrName]; ok {
		snapshot = id
	}
	_, isVolume := b.volumes[volume]
	_, isSnapshot := b.snapshots[snapshot]
	b.mu.Unlock()
	switch {
	case isVolume:
		return b.deleteVolume(volume, func(*Volume) error { return nil })
	case isSnapshot:
		return b.DeleteSnapshot(snapshot)
	default:
		return fmt.Errorf("%w: %q", ErrNotFound, idOrName)
	}
}

// IsReady says whether a snapshot can be restored from now.
func (b *Backend) IsReady(s Snapshot) bool { return s.IsReady(b.options.Now()) }
