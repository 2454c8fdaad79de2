// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"maps"
	"slices"
	"strings"
)

// Branch is one value of one topology key, with the branches or the nodes below it.
type Branch struct {
	Key, Value string
	Branches   []*Branch
	// Nodes are there in the last branch only.
	Nodes []string
	// Segment is that of the nodes, as text; Placed tells that they have all the labels that make one.
	Segment string
	Placed  bool
}

// unlabelled stands for a key that the driver names and the Node does not have.
const unlabelled = "(no such label)"

// Tree is where the driver runs, for people to look at: what has the fewest values comes first, as regions have
// fewer than zones. A driver without topology has one branch without a key.
func (x *Index) Tree() []*Branch {
	x.mu.RLock()
	defer x.mu.RUnlock()
	sets := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(x.nodes)) {
		if n := x.nodes[name]; n.known && n.registered {
			sets[n.setID()] = append(sets[n.setID()], name)
		}
	}
	root := &Branch{}
	for _, id := range slices.Sorted(maps.Keys(sets)) {
		names := sets[id]
		keys := x.byRank(x.nodes[names[0]].keys, names)
		for _, name := range names {
			at := root
			for _, key := range keys {
				at = at.grow(key, valueOf(x.nodes[name].labels, key))
			}
			if at == root {
				at = root.grow("", "")
			}
			at.Nodes = append(at.Nodes, name)
			if segment, ok := segmentOn(x.nodes[name].keys, x.nodes[name].labels); ok {
				at.Segment, at.Placed = segment.String(), true
			}
		}
	}
	root.order()
	return root.Branches
}

// byRank puts the key with the fewest values first.
func (x *Index) byRank(keys, names []string) []string {
	values := map[string]int{}
	for _, key := range keys {
		distinct := map[string]bool{}
		for _, name := range names {
			distinct[valueOf(x.nodes[name].labels, key)] = true
		}
		values[key] = len(distinct)
	}
	return slices.SortedFunc(slices.Values(keys), func(a, b string) int {
		if values[a] != values[b] {
			return values[a] - values[b]
		}
		return strings.Compare(a, b)
	})
}

func valueOf(labels map[string]string, key string) string {
	if value, ok := labels[key]; ok {
		return value
	}
	return unlabelled
}

// grow finds or makes the branch below.
func (b *Branch) grow(key, value string) *Branch {
	for _, known := range b.Branches {
		if known.Key == key && known.Value == value {
			return known
		}
	}
	grown := &Branch{Key: key, Value: value}
	b.Branches = append(b.Branches, grown)
	return grown
}

func (b *Branch) order() {
	slices.SortFunc(b.Branches, func(x, y *Branch) int {
		if c := strings.Compare(x.Key, y.Key); c != 0 {
			return c
		}
		return strings.Compare(x.Value, y.Value)
	})
	for _, below := range b.Branches {
		below.order()
	}
}
