// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"strings"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// Space is what is known of the room in a segment.
type Space struct {
	// Segment is the segment as text.
	Segment string
	// Classes are those that have the same room.
	Classes []string
	// IsKnown tells that the driver has ever answered.
	IsKnown   bool
	Available int64
	// Maximum is that of one volume; nil when the driver does not say.
	Maximum *int64
	// Since is when the driver was asked that, and Failures are the questions since then that it did not answer.
	Since    time.Time
	Failures int
}

// What is shown of a large cluster. The rest is counted.
const (
	shownBranches = 50
	shownNodes    = 20
)

type branchView struct {
	Key, Value   string
	Branches     []branchView
	MoreBranches int
	Nodes        []string
	MoreNodes    int
	Spaces       []spaceView
}

type spaceView struct {
	Text, Classes, Age string
	Failing            bool
}

// viewSpaces puts into words what is known of each segment.
func (s *shown) viewSpaces(now time.Time) map[string][]spaceView {
	if s.spaces == nil {
		return nil
	}
	views := map[string][]spaceView{}
	for _, space := range s.spaces() {
		view := spaceView{Classes: strings.Join(space.Classes, ", "), Failing: space.Failures > 0, Text: space.text(), Age: ago(now, space.Since) + " ago"}
		switch {
		case !space.IsKnown:
			view.Age = "asked first " + view.Age
		case view.Failing:
			view.Age += ", no answer since"
		}
		views[space.Segment] = append(views[space.Segment], view)
	}
	return views
}

func (s Space) text() string {
	switch {
	case !s.IsKnown:
		return "no answer about its room yet"
	case s.Maximum != nil && *s.Maximum < s.Available:
		return fmt.Sprintf("room for %s, in volumes of %s at most", size(s.Available), size(*s.Maximum))
	}
	return "room for " + size(s.Available)
}

// viewTree cuts short what is too long to read, and adds what is known of the segments.
func viewTree(branches []*topology.Branch, spaces map[string][]spaceView) (views []branchView, more int) {
	shown := branches[:min(len(branches), shownBranches)]
	for _, b := range shown {
		view := branchView{Key: b.Key, Value: b.Value, Nodes: b.Nodes[:min(len(b.Nodes), shownNodes)]}
		view.MoreNodes = len(b.Nodes) - len(view.Nodes)
		view.Branches, view.MoreBranches = viewTree(b.Branches, spaces)
		if b.Placed {
			view.Spaces = spaces[b.Segment]
		}
		views = append(views, view)
	}
	return views, len(branches) - len(shown)
}

// size is a number of bytes as people say it.
func size(bytes int64) string {
	if bytes < 1<<10 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes), 0
	for value >= 1<<10 && unit < len("KMGTPE") {
		value /= 1 << 10
		unit++
	}
	return fmt.Sprintf("%.4g %ciB", value, " KMGTPE"[unit])
}
