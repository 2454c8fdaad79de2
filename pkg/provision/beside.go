// SPDX-License-Identifier: Apache-2.0

package provision

import "slices"

// Of one claim there can be several attempts: the one that is worked on, and behind it those that are gone back to, one by one, once it
// has an end. What is being removed comes first: nothing is asked for before that has an end.

// after is a new attempt with those that came before it.
func (a *Attempt) after(prior *Attempt) *Attempt { return inRow(a, prior.row()...) }

// Beside is the attempt with an older one for the same claim, which is repeated once nobody waits any more.
func (a *Attempt) Beside(older *Attempt) *Attempt {
	return removalFirst(slices.Concat(a.row(), older.row())).asParking()
}

// asked lists those of the row that are asked in turn: while something is being removed, the removals.
func (a *Attempt) asked() []*Attempt {
	row := a.row()
	if a.Undoing == nil {
		return row
	}
	return slices.DeleteFunc(row, func(p *Attempt) bool { return p.Undoing == nil })
}

// row lists the attempt and those behind it.
func (a *Attempt) row() (row []*Attempt) {
	for ; a != nil; a = a.Prior {
		row = append(row, a)
	}
	return row
}

// removalFirst puts what is being removed before all that may be asked for: the driver can give the same id for that, and what was bound
// would be destroyed by a removal that is done late.
func removalFirst(row []*Attempt) *Attempt {
	slices.SortStableFunc(row, func(a, b *Attempt) int {
		switch {
		case a.Undoing != nil && b.Undoing == nil:
			return -1
		case a.Undoing == nil && b.Undoing != nil:
			return 1
		}
		return 0
	})
	return inRow(row[0], row[1:]...)
}

// turned puts the first attempt behind all others: those may find out what it cannot. A removal stays before what may be asked for, which
// would end with a PersistentVolume, and the removal with it.
func (a *Attempt) turned() *Attempt {
	if a.Prior == nil {
		return a
	}
	row := a.row()
	return removalFirst(append(row[1:], row[0])).asParking()
}

// IsFreed tells that the source need not stay for the claim, as far as any of its attempts knows.
func (a *Attempt) IsFreed() bool {
	return slices.ContainsFunc(a.row(), func(p *Attempt) bool { return p.Freed })
}

// asParking is the attempt while all behind it wait. What they were answered may be removed by now, so that they ask again.
func (a *Attempt) asParking() *Attempt {
	row := a.row()
	for i, p := range row[1:] {
		if p.Parked && p.Open && p.Made == nil {
			continue
		}
		parked := *p
		parked.Parked, parked.Open, parked.Made = true, true, nil
		row[i+1] = &parked
	}
	return inRow(row[0], row[1:]...)
}

// inRow links attempts. One that asks for the very same as one before it is that one: a claim that goes round between full nodes is not
// to be remembered once more for each round.
func inRow(first *Attempt, others ...*Attempt) *Attempt {
	row := []*Attempt{first}
	for _, p := range others {
		i := slices.IndexFunc(row, p.isSame)
		if i < 0 {
			row = append(row, p)
		} else {
			row[i] = row[i].asOpenAs(p)
		}
	}
	var next *Attempt
	for _, p := range slices.Backward(row) {
		if p.Prior != next {
			relinked := *p
			relinked.Prior = next
			p = &relinked
		}
		next = p
	}
	return next
}

// asOpenAs is the attempt, of which all is open that is so of one that is the same.
func (a *Attempt) asOpenAs(same *Attempt) *Attempt {
	runs := a.Undoing != nil && same.Undoing.Open && !a.Undoing.Open
	if !runs && (a.Open || !same.Open) {
		return a
	}
	next := *a
	next.Open = a.Open || same.Open
	if runs {
		undoing := *a.Undoing
		undoing.Open = true
		next.Undoing = &undoing
	}
	return &next
}

// isSame tells that with one of two attempts the other is settled as well. A removal is about one volume, while the driver may have made
// others for the same request, each under an id of its own: another removal stays beside it, and so does the request.
func (a *Attempt) isSame(b *Attempt) bool {
	if a.Undoing == nil || b.Undoing == nil {
		return a.Undoing == b.Undoing && a.isSameCall(b)
	}
	return a.Undoing.Handle == b.Undoing.Handle && a.isSameCall(b)
}
