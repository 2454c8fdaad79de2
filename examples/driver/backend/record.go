// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"maps"
	"slices"
	"time"
)

// Volume is the record of one volume, as it is kept on disk.
type Volume struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Size       int64             `json:"size"`
	Block      bool              `json:"block,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Mutable    map[string]string `json:"mutable,omitempty"`
	Source     Source            `json:"source,omitzero"`
	Segment    Segment           `json:"segment,omitempty"`
	Created    time.Time         `json:"created"`
	// Uses are the paths at which nodes have the volume staged or published.
	Uses []Use `json:"uses,omitempty"`
}

// Source says what a volume was filled from; at most one of the two is set.
type Source struct {
	Snapshot string `json:"snapshot,omitempty"`
	Volume   string `json:"volume,omitempty"`
}

// IsZero is true for a volume that began empty.
func (s Source) IsZero() bool { return s == Source{} }

// Use is one path at which a node has the volume.
type Use struct {
	Path     string `json:"path"`
	Staging  bool   `json:"staging,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	// Exclusive is set for an access mode that allows one publication.
	Exclusive bool `json:"exclusive,omitempty"`
}

// Snapshot is the record of one snapshot, as it is kept on disk.
type Snapshot struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Volume     string            `json:"volume"`
	Size       int64             `json:"size"`
	Block      bool              `json:"block,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Segment    Segment           `json:"segment,omitempty"`
	Created    time.Time         `json:"created"`
	ReadyAt    time.Time         `json:"readyAt"`
}

// IsReady says whether the snapshot can be restored from at the given time.
func (s Snapshot) IsReady(now time.Time) bool { return !now.Before(s.ReadyAt) }

func (v *Volume) identity() string   { return v.ID }
func (s *Snapshot) identity() string { return s.ID }

// clone detaches what is handed out from the state behind the lock.
func (v *Volume) clone() Volume {
	c := *v
	c.Parameters = maps.Clone(v.Parameters)
	c.Mutable = maps.Clone(v.Mutable)
	c.Segment = maps.Clone(v.Segment)
	c.Uses = slices.Clone(v.Uses)
	return c
}

func (s *Snapshot) clone() Snapshot {
	c := *s
	c.Parameters = maps.Clone(s.Parameters)
	c.Segment = maps.Clone(s.Segment)
	return c
}
