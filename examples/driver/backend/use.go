// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"slices"
)

// BeginUse records that a node has the volume at a path. It is called before
// the path is mounted, so that after a kill between the two the volume counts
// as used, which the next unpublish puts right; the other order would allow
// deleting a mounted volume.
func (b *Backend) BeginUse(id string, use Use) error {
	return b.change(id, func(v *Volume) error {
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
