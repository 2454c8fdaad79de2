// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"cmp"
	"slices"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/capacity"
)

// Known is what the room knows of one segment, for people to look at.
type Known struct {
	Segment string
	// Classes are those that the answer is for.
	Classes []string
	// Room is the driver's last answer; nil while there is none.
	Room *capacity.Room
	// Since is when the question was asked that was answered last, or the first one where none was.
	Since time.Time
	// Failures are those in a row.
	Failures int
}

// Known tells all that is known, sorted by segments and classes.
func (c *Controller) Known() []Known {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	all := make([]Known, 0, len(c.memory.asks))
	for key, a := range c.memory.asks {
		group, isAsked := c.memory.classes.groups[key.Namespace]
		if !isAsked || a.since.IsZero() {
			continue
		}
		all = append(all, Known{Segment: key.Name, Classes: group.classes, Room: a.room, Since: a.since, Failures: a.failures})
	}
	slices.SortFunc(all, func(a, b Known) int {
		return cmp.Or(cmp.Compare(a.Segment, b.Segment), slices.Compare(a.Classes, b.Classes))
	})
	return all
}
