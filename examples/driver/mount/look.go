// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"os"
	"slices"
)

// Presence is what there is at a path, for those who have some content.
type Presence int

// What there may be: no mount and no link, the content, or others'. Covered is the content with others' on top of it, and
// Elsewhere a link of others.
const (
	Nothing Presence = iota
	Mounted
	Linked
	Covered
	Foreign
	Elsewhere
)

// Look says what is at the path. It is all that decides whether something is taken for the content, and taken away. The content may be
// at one of several paths, and gone from all of them.
func Look(path string, own []string) (Presence, error) {
	if link, err := os.Readlink(path); err == nil {
		if slices.Contains(own, link) {
			return Linked, nil
		}
		return Elsewhere, nil
	}
	all, err := table()
	if err != nil {
		return Nothing, err
	}
	stack := at(all, Point(path))
	if len(stack) == 0 {
		return Nothing, nil
	}
	found := Foreign
	for _, content := range own {
		shown, err := placeOf(all, content)
		switch {
		case err != nil:
			return Nothing, err
		case stack[len(stack)-1] == shown:
			return Mounted, nil
		case slices.Contains(stack, shown):
			found = Covered
		}
	}
	return found, nil
}
