// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

const (
	// DefaultVolumeSize is the size of a volume for which nobody names one.
	DefaultVolumeSize int64 = 1 << 30
	// sector is what a block device has a whole number of: of a file of another size it leaves out the end.
	sector int64 = 512
)

// VolumeRequest asks for a volume.
type VolumeRequest struct {
	Name       string
	Required   int64
	Limit      int64
	Block      bool
	Parameters map[string]string
	Mutable    map[string]string
	Source     Source
	Requisite  []Segment
	Preferred  []Segment
}

// origin is the data that a new volume begins with.
type origin struct {
	id      string
	path    string
	size    int64
	segment *Segment
	unpin   func()
}

// CreateVolume makes the volume, or finds it if it was made before from a
// compatible request. It does not give up half way: a caller that stops
// waiting finds the volume when it asks again.
func (b *Backend) CreateVolume(r VolumeRequest) (Volume, error) {
	done, err := b.begin("volume", r.Name)
	if err != nil {
		return Volume{}, err
	}
	defer done()
	b.mu.Lock()
	if existing, ok := b.volumes[b.volumeNames[r.Name]]; ok {
		defer b.mu.Unlock()
		return existing.clone(), b.isCompatible(existing, r)
	}
	v, from, err := b.plan(r)
	b.mu.Unlock()
	if err != nil {
		return Volume{}, err
	}
	defer from.unpin()
	err = b.store.create(volumeKind, v.ID, v, func(data string) error { return fill(data, v, from) })
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.release(v.Segment, v.Size)
		return Volume{}, fmt.Errorf("creating volume %q: %w", r.Name, err)
	}
	b.volumes[v.ID], b.volumeNames[v.Name] = v, v.ID
	return v.clone(), nil
}

// plan decides everything about a new volume and takes its room. The caller
// holds the lock and must unpin the origin when the data is there.
func (b *Backend) plan(r VolumeRequest) (*Volume, origin, error) {
	from, err := b.origin(r)
	if err != nil {
		return nil, origin{}, err
	}
	size, err := b.size(r, from)
	if err != nil {
		return nil, origin{}, err
	}
	segment, err := b.reserve(place{size: size, requisite: r.Requisite, preferred: r.Preferred, origin: from.segment})
	if err != nil {
		return nil, origin{}, err
	}
	from.unpin = func() {}
	if from.id != "" {
		from.unpin = b.pin(from.id)
	}
	return &Volume{
		ID: b.identify("volume", r.Name), Name: r.Name, Size: size, Block: r.Block,
		Parameters: maps.Clone(r.Parameters), Mutable: maps.Clone(r.Mutable),
		Source: r.Source, Segment: segment, Created: b.options.Now().UTC(),
	}, from, nil
}

func (b *Backend) origin(r VolumeRequest) (origin, error) {
	var from origin
	var block bool
	switch {
	case r.Source.IsZero():
		return from, nil
	case r.Source.Snapshot != "":
		s, ok := b.snapshots[r.Source.Snapshot]
		if !ok {
			return from, fmt.Errorf("%w: snapshot %q", ErrNotFound, r.Source.Snapshot)
		}
		if !s.IsReady(b.options.Now()) {
			return from, fmt.Errorf("%w: snapshot %q", ErrNotReady, s.ID)
		}
		from = origin{id: s.ID, path: b.store.data(snapshotKind, s.ID), size: s.Size, segment: &s.Segment}
		block = s.Block
	default:
		v, ok := b.volumes[r.Source.Volume]
		if !ok {
			return from, fmt.Errorf("%w: volume %q", ErrNotFound, r.Source.Volume)
		}
		from = origin{id: v.ID, path: b.store.data(volumeKind, v.ID), size: v.Size, segment: &v.Segment}
		block = v.Block
	}
	if block != r.Block {
		return from, fmt.Errorf("%w: source %q and request disagree about block access", ErrInvalid, from.id)
	}
	return from, nil
}

// size settles the capacity. A copy is never smaller than what it copies.
func (b *Backend) size(r VolumeRequest, from origin) (int64, error) {
	if r.Required < 0 || r.Limit < 0 || (r.Limit > 0 && r.Required > r.Limit) {
		return 0, fmt.Errorf("%w: required %d, limit %d", ErrRange, r.Required, r.Limit)
	}
	if r.Required > 0 && r.Required < from.size {
		return 0, fmt.Errorf("%w: %d bytes are asked for, the source has %d", ErrRange, r.Required, from.size)
	}
	size := r.Required
	if size == 0 {
		size = r.wish(from)
	}
	size = max(size, b.options.MinimumSize)
	if r.Block {
		if size = inSectors(size); size < 0 {
			return 0, fmt.Errorf("%w: %d bytes are asked for", ErrRange, r.Required)
		}
	}
	if r.Limit > 0 && size > r.Limit {
		return 0, fmt.Errorf("%w: at least %d bytes are needed, the limit is %d", ErrRange, size, r.Limit)
	}
	return size, nil
}

// wish is the size of a volume for which nobody asked for one.
func (r VolumeRequest) wish(from origin) int64 {
	limit := r.Limit
	if r.Block {
		limit -= limit % sector
	}
	switch {
	case from.size > 0:
		return from.size
	case r.Limit > 0:
		return min(DefaultVolumeSize, limit)
	default:
		return DefaultVolumeSize
	}
}

// inSectors rounds up, to one sector at least; it is negative for what cannot be rounded.
func inSectors(size int64) int64 {
	if rest := size % sector; rest > 0 || size == 0 {
		return size + sector - rest
	}
	return size
}

func fill(data string, v *Volume, from origin) error {
	switch {
	case v.Block:
		return fillBlock(data, from.path, v.Size)
	case from.path != "":
		return copyTree(from.path, data)
	default:
		// What a pod may do in its volume is decided there, not by our umask.
		if err := os.Mkdir(data, 0o777); err != nil {
			return err
		}
		return os.Chmod(data, 0o777)
	}
}

// isCompatible compares with the request that the existing volume answers. Mutable
// parameters are not among the things that the CSI specification compares:
// they may have been modified since.
func (b *Backend) isCompatible(v *Volume, r VolumeRequest) error {
	var differ []string
	note := func(what string, same bool) {
		if !same {
			differ = append(differ, what)
		}
	}
	note("capacity", r.Required >= 0 && v.Size >= r.Required && (r.Limit == 0 || v.Size <= r.Limit))
	note("access type", v.Block == r.Block)
	note("parameters", maps.Equal(v.Parameters, r.Parameters))
	note("content source", v.Source == r.Source)
	note("topology", meetsAny(v.Segment, r.Requisite))
	if len(differ) > 0 {
		return fmt.Errorf("%w: volume %q differs in %s", ErrConflict, v.Name, strings.Join(differ, ", "))
	}
	return nil
}

// DeleteVolume removes a volume; one that does not exist is no error.
func (b *Backend) DeleteVolume(id string) error {
	return b.deleteVolume(id, func(v *Volume) error {
		if len(v.Uses) > 0 {
			return fmt.Errorf("%w: volume %q is at %s", ErrInUse, id, v.Uses[0].Path)
		}
		return nil
	})
}

func (b *Backend) deleteVolume(id string, permit func(*Volume) error) error {
	b.mu.Lock()
	v, ok := b.volumes[id]
	if !ok {
		b.mu.Unlock()
		return nil
	}
	if b.pins[id] > 0 {
		b.mu.Unlock()
		return fmt.Errorf("%w: volume %q is being copied", ErrBusy, id)
	}
	done, err := b.begin("volume", v.Name)
	if err == nil {
		defer done()
		err = permit(v)
	}
	if err != nil {
		b.mu.Unlock()
		return err
	}
	// Out of the maps first: nobody can begin to copy or use what is going.
	delete(b.volumes, id)
	delete(b.volumeNames, v.Name)
	b.mu.Unlock()
	err = b.store.discard(volumeKind, id)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil && b.store.has(volumeKind, id) {
		b.volumes[id], b.volumeNames[v.Name] = v, id
		return fmt.Errorf("deleting volume %q: %w", id, err)
	}
	b.release(v.Segment, v.Size)
	return nil
}

// ModifyVolume merges mutable parameters into those of the volume.
func (b *Backend) ModifyVolume(id string, mutable map[string]string) error {
	return b.change(id, func(v *Volume) error {
		if v.Mutable == nil {
			v.Mutable = map[string]string{}
		}
		maps.Copy(v.Mutable, mutable)
		return nil
	})
}

// change edits a copy of the record and keeps it if it could be written.
func (b *Backend) change(id string, edit func(*Volume) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.volumes[id]
	if !ok {
		return fmt.Errorf("%w: volume %q", ErrNotFound, id)
	}
	edited := v.clone()
	if err := edit(&edited); err != nil {
		return err
	}
	if err := b.store.replace(volumeKind, id, &edited); err != nil {
		return fmt.Errorf("changing volume %q: %w", id, err)
	}
	b.volumes[id] = &edited
	return nil
}

// Volume finds a volume by id.
func (b *Backend) Volume(id string) (Volume, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.volumes[id]
	if !ok {
		return Volume{}, false
	}
	return v.clone(), true
}

// Volumes lists all volumes in the order of their ids.
func (b *Backend) Volumes() []Volume {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Volume, 0, len(b.volumes))
	for _, id := range slices.Sorted(maps.Keys(b.volumes)) {
		all = append(all, b.volumes[id].clone())
	}
	return all
}
