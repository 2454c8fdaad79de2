// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// budget is what one object of a phase may cost. What is answered 409 is not counted.
type budget struct {
	phase  string
	writes float64
	// reads are live ones; -1 is for phases in which they are not limited.
	reads float64
}

// budgets are those of our own programs. The live read of a deletion is the one that permits it; that of a snapshot is of
// the volume to be cut, which is cheaper than a cache of all volumes. A snapshot whose content went so fast that its cache
// does not show it any more costs one read more, by which it is certain that nothing is orphaned: a few in a hundred.
var budgets = []budget{
	{provisioning, 2.2, 0},
	{snapshotting, 8, 1},
	{restoring, 4.2, -1},
	{snapshotDeletion, 3, 1.1},
	{volumeDeletion, 2, 1},
}

// overspent tells each budget that does not hold, and what was asked for.
func overspent(r *Result) []string {
	var all []string
	for _, limit := range budgets {
		row, found := r.row(limit.phase)
		if !found {
			all = append(all, fmt.Sprintf("%s was not measured", limit.phase))
			continue
		}
		if writes := row.writes(); writes > limit.writes {
			all = append(all, fmt.Sprintf("%s: %.2f writes, %.2f are allowed: %s", limit.phase, writes, limit.writes,
				row.spent(func(q *requests) map[string]int { return q.Writes })))
		}
		if reads := row.reads(); limit.reads >= 0 && reads > limit.reads {
			all = append(all, fmt.Sprintf("%s: %.2f reads, %.2f are allowed: %s", limit.phase, reads, limit.reads,
				row.spent(func(q *requests) map[string]int { return q.Reads })))
		}
		if row.Calls != 1 || row.CallsMost != 1 {
			all = append(all, fmt.Sprintf("%s: %.2f driver calls, and %d for the object with most; one for each is enough", limit.phase, row.Calls, row.CallsMost))
		}
	}
	return all
}

func budgetOf(phase string) (budget, bool) {
	for _, b := range budgets {
		if b.phase == phase {
			return b, true
		}
	}
	return budget{}, false
}
