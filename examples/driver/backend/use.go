// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// BeginUse records that a node has the volume at a path. It is called before
// the path is mounted, so that after a kill between the two the volume counts
// as used, which the next unpublish puts right; the other order would allow
// deleting a mounted volume.
func (b *Backend) BeginUse(id string, use Use) error {
	return b.change(id, func(v *Volume) error {
		// Undoing the one would take the other away.
		for _, other := range b.holders(use.Path) {
			if other != id {
				return fmt.Errorf("%w: %s is where volume %q is", ErrInUse, use.Path, other)
			}
		}
		for _, u := range v.Uses {
			switch {
			case u.Path == use.Path && u != use:
				return fmt.Errorf("%w: volume %q is at %s in another way", ErrConflict, id, u.Path)
			case u.Path == use.Path:
				return nil
			case !u.Staging && !use.Staging && (u.Exclusive || use.Exclusive):
				// CSI specification, access mode SINGLE_NODE_SINGLE_WRITER.
				return fmt.Errorf("%w: volume %q is at %s, and only one publication is allowed", ErrInUse, id, u.Path)
			}
		}
		v.Uses = append(v.Uses, use)
		return nil
	})
}

// EndUse records that a path is free again. A path that was not recorded, or
// a volume that is gone, is no error.
func (b *Backend) EndUse(id, path string) error {
	v, ok := b.Volume(id)
	if !ok || !slices.ContainsFunc(v.Uses, func(u Use) bool { return u.Path == path }) {
		return nil
	}
	return b.change(id, func(v *Volume) error {
		v.Uses = slices.DeleteFunc(v.Uses, func(u Use) bool { return u.Path == path })
		return nil
	})
}

// holders lists the volumes that are on record at a path. The caller holds the lock.
func (b *Backend) holders(path string) []string {
	var found []string
	for id, v := range b.volumes {
		if slices.ContainsFunc(v.Uses, func(u Use) bool { return u.Path == path }) {
			found = append(found, id)
		}
	}
	return found
}

// shape is that of the ids of volumes.
var shape = regexp.MustCompile(`^vol-[0-9a-f]{32}$`)

// Remains lists where the data of a volume are, or were: by that it is still known when it is gone. An id that none of our
// volumes can have has nothing.
func (b *Backend) Remains(id string) []string {
	if !shape.MatchString(id) {
		return nil
	}
	return []string{b.store.data(volumeKind, id), b.store.data(trashKind, id)}
}

// Holds says whether a path is one of the backend's own, or leads to them.
func (b *Backend) Holds(path string) bool {
	own, path := b.store.dir+"/", strings.TrimSuffix(path, "/")+"/"
	return strings.HasPrefix(own, path) || strings.HasPrefix(path, own)
}
