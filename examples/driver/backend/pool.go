// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DefaultPoolCapacity is what a pool has when nobody says otherwise.
const DefaultPoolCapacity int64 = 1 << 40

// Segment is a set of topology keys with one value each.
type Segment map[string]string

// Key is the same string for equal segments.
func (s Segment) Key() string {
	var b strings.Builder
	for i, k := range slices.Sorted(maps.Keys(s)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(k + "=" + s[k])
	}
	return b.String()
}

// Meets says whether one of the two describes the other more closely, so that
// storage in the one can be used from (a part of) the other.
func (s Segment) Meets(other Segment) bool {
	return s.within(other) || other.within(s)
}

func (s Segment) within(other Segment) bool {
	for k, v := range s {
		if w, ok := other[k]; !ok || w != v {
			return false
		}
	}
	return true
}

// Pool is storage that can be reached from every node in its segment.
type Pool struct {
	Segment  Segment
	Capacity int64
	// MaximumVolumeSize limits a single volume; zero means the capacity does.
	MaximumVolumeSize int64
}

// Capacity is the answer to how much room there is.
type Capacity struct {
	Available         int64
	MaximumVolumeSize int64
}

// Capacity sums up the pools that meet the segment; nil asks for all.
func (b *Backend) Capacity(segment Segment) Capacity {
	b.mu.Lock()
	defer b.mu.Unlock()
	var total Capacity
	for _, p := range b.options.Pools {
		if segment != nil && !p.Segment.Meets(segment) {
			continue
		}
		free := b.free(p)
		total.Available += free
		total.MaximumVolumeSize = max(total.MaximumVolumeSize, p.limit(free))
	}
	return total
}

func (p Pool) limit(free int64) int64 {
	if p.MaximumVolumeSize > 0 {
		return min(free, p.MaximumVolumeSize)
	}
	return free
}

// free is what a pool has left. The caller holds the lock.
func (b *Backend) free(p Pool) int64 {
	return max(0, p.Capacity-b.used[p.Segment.Key()])
}

// place is the question where an object of some size may go.
type place struct {
	size      int64
	requisite []Segment
	preferred []Segment
	// origin is the segment of the data to copy, if there is any.
	origin *Segment
}

// reserve chooses a pool and takes the room in it. Preference goes by the
// order of the request; within equals, and without a request, to the pool
// with the most room. The caller holds the lock, and gives the room back with
// release if the object does not come to be.
func (b *Backend) reserve(p place) (Segment, error) {
	for _, pool := range b.candidates(p) {
		if p.size <= pool.limit(b.free(pool)) {
			b.used[pool.Segment.Key()] += p.size
			return maps.Clone(pool.Segment), nil
		}
	}
	return nil, fmt.Errorf("%w: %d bytes%s", ErrExhausted, p.size, p.where())
}

// release gives room back. The caller holds the lock.
func (b *Backend) release(s Segment, size int64) {
	b.used[s.Key()] -= size
}

func (p place) where() string {
	var text string
	if p.origin != nil && len(*p.origin) > 0 {
		text = fmt.Sprintf(" beside their source in {%s}", p.origin.Key())
	}
	var terms []string
	for _, s := range p.requisite {
		terms = append(terms, "{"+s.Key()+"}")
	}
	if len(terms) > 0 {
		text += " in one of " + strings.Join(terms, " ")
	}
	return text
}

// candidates lists the pools that may be used, best first.
func (b *Backend) candidates(p place) []Pool {
	var allowed []Pool
	for _, pool := range b.options.Pools {
		if b.reaches(pool, p.origin) && meetsAny(pool.Segment, p.requisite) {
			allowed = append(allowed, pool)
		}
	}
	type standing struct {
		rank int
		room int64
	}
	standings := make(map[string]standing, len(allowed))
	terms := slices.Concat(p.preferred, p.requisite)
	for _, pool := range allowed {
		st := standing{rank: len(terms), room: b.free(pool)}
		if i := slices.IndexFunc(terms, pool.Segment.Meets); i >= 0 {
			st.rank = i
		}
		standings[pool.Segment.Key()] = st
	}
	slices.SortStableFunc(allowed, func(x, y Pool) int {
		sx, sy := standings[x.Segment.Key()], standings[y.Segment.Key()]
		return cmp.Or(cmp.Compare(sx.rank, sy.rank), cmp.Compare(sy.room, sx.room))
	})
	return allowed
}

func (b *Backend) reaches(pool Pool, origin *Segment) bool {
	return origin == nil || b.options.CopyAcross || pool.Segment.Key() == origin.Key()
}

// meetsAny treats an empty list as no condition, as the CSI specification
// does for TopologyRequirement.requisite.
func meetsAny(s Segment, terms []Segment) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, s.Meets)
}
