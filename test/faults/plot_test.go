// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// plot is a whole random run, written down before it begins. All of it follows from a seed and the number of lives; what of it
// is kept can be chosen, so that a part of a run is played at the times of the whole.
type plot struct {
	seed  uint64
	lives []life
	blows []blow
}

// life is what becomes of one object.
type life struct {
	id   string
	kind kind
	// from is the life that this one is made from, if it is.
	from string
	// at counts from the beginning of the run.
	at time.Duration
	// waits says that nothing goes on until the object is finished, or for some seconds.
	waits bool
	// lingers is how long it stays after that, and stays that it is not deleted before all are.
	lingers time.Duration
	stays   bool
}

// kind is that of a life.
type kind int

const (
	plain kind = iota
	restored
	cloned
	cut
	imported
)

func (k kind) isClaim() bool { return k <= cloned }

// blow is one fault, or one end of a process.
type blow struct {
	id string
	at time.Duration
	// what is a name in the tables of blows, and whom the program whose proxies are meant, where one is.
	what, whom string
	// where narrows it: a resource, or an RPC.
	where string
	times int
	// lasts is how long it stays in force, and by how much things are late.
	lasts, late time.Duration
	// pick chooses among what is there when it strikes.
	pick uint64
}

func (b blow) String() string {
	text := fmt.Sprintf("%s at %s: %s", b.id, b.at.Round(time.Millisecond), b.what)
	for _, part := range []string{b.whom, b.where} {
		if part != "" {
			text += " " + part
		}
	}
	return fmt.Sprintf("%s, %d times, for %s, late by %s", text, b.times, b.lasts.Round(time.Millisecond), b.late.Round(time.Millisecond))
}

// rate is how much time there is for each life: the machine has to keep up, or all would only wait for it.
const rate = 90 * time.Millisecond

// write makes a plot.
func write(seed uint64, count int) plot {
	s := plot{seed: seed}
	fate := rand.New(rand.NewPCG(seed, 1))
	for i := range count {
		s.lives = append(s.lives, newLife(fate, s.lives, i))
	}
	end := time.Duration(count)*rate + 3*time.Second
	for i, stream := range []struct {
		letter string
		table  []sort
		gap    time.Duration
	}{{"a", apiSorts, 200 * time.Millisecond}, {"d", driverSorts, 200 * time.Millisecond}, {"k", endSorts, 2500 * time.Millisecond}} {
		chance := rand.New(rand.NewPCG(seed, uint64(i)+2))
		at := between(chance, 0, stream.gap)
		for n := 1; at < end; n++ {
			b := newBlow(chance, stream.table)
			b.id, b.at = fmt.Sprint(stream.letter, n), at
			s.blows = append(s.blows, b)
			at += between(chance, stream.gap/4, 2*stream.gap)
		}
	}
	return s
}

// shares of the kinds, in percent: claims first, since the others need them.
func newLife(fate *rand.Rand, before []life, i int) life {
	l := life{
		id: fmt.Sprint("o", i+1), at: time.Duration(i)*rate + between(fate, 0, rate), waits: fate.IntN(100) < 65,
		lingers: between(fate, 0, 1500*time.Millisecond), stays: fate.IntN(100) < 25,
	}
	if fate.IntN(3) == 0 {
		l.lingers /= 20 // Gone before anybody has turned round.
	}
	share, pick := fate.IntN(100), fate.Uint64()
	switch {
	case share < 40:
	case share < 55:
		l.kind = restored
	case share < 65:
		l.kind = cloned
	case share < 90:
		l.kind = cut
	default:
		l.kind = imported
	}
	// One of the latest, since most of the others are gone by now.
	var candidates []string
	for _, other := range before[max(0, len(before)-12):] {
		if other.kind.isClaim() != (l.kind == restored) {
			candidates = append(candidates, other.id)
		}
	}
	switch {
	case l.kind == plain:
	case len(candidates) == 0:
		l.kind = plain
	default:
		l.from = candidates[pick%uint64(len(candidates))]
	}
	return l
}

// sort is a row of a table of blows.
type sort struct {
	name  string
	share int
	// wheres are what it may be narrowed to, empty for all; one of them is taken.
	wheres []string
	// common says that it is not about one program.
	common bool
}

func newBlow(chance *rand.Rand, table []sort) blow {
	sum := 0
	for _, s := range table {
		sum += s.share
	}
	at, chosen := chance.IntN(sum), 0
	for at >= table[chosen].share {
		at -= table[chosen].share
		chosen++
	}
	s := table[chosen]
	b := blow{
		what: s.name, whom: string(programs[chance.IntN(len(programs))]), times: 1 + chance.IntN(6),
		lasts: between(chance, 100*time.Millisecond, 2500*time.Millisecond), late: between(chance, 50*time.Millisecond, 1500*time.Millisecond),
		pick: chance.Uint64(),
	}
	if where := chance.Uint64(); len(s.wheres) > 0 {
		b.where = s.wheres[where%uint64(len(s.wheres))]
	}
	if s.common {
		b.whom = ""
	}
	return b
}

func between(chance *rand.Rand, shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(chance.Int64N(int64(longest-shortest)))
}

// items are the names of all that can be left out.
func (s plot) items() []string {
	var all []string
	for _, l := range s.lives {
		all = append(all, l.id)
	}
	for _, b := range s.blows {
		all = append(all, b.id)
	}
	return all
}

// only keeps some of a plot, at the times that they have. Dead time before the first of them is left out.
func (s plot) only(items []string) plot {
	wanted := map[string]bool{}
	for _, item := range items {
		wanted[item] = true
	}
	kept := plot{seed: s.seed}
	for _, l := range s.lives {
		if wanted[l.id] {
			kept.lives = append(kept.lives, l)
		}
	}
	for _, b := range s.blows {
		if wanted[b.id] {
			kept.blows = append(kept.blows, b)
		}
	}
	return kept.earlier()
}

const lead = 2 * time.Second

func (s plot) earlier() plot {
	if len(s.lives) == 0 {
		return s
	}
	begin := max(0, s.lives[0].at-lead)
	for i := range s.lives {
		s.lives[i].at -= begin
	}
	for i := range s.blows {
		s.blows[i].at = max(0, s.blows[i].at-begin)
	}
	return s
}

// withAncestors adds to some lives those that they are made from.
func (s plot) withAncestors(ids []string) []string {
	from := map[string]string{}
	for _, l := range s.lives {
		from[l.id] = l.from
	}
	seen := map[string]bool{}
	var all []string
	for _, id := range ids {
		for ; id != "" && !seen[id]; id = from[id] {
			if _, ok := from[id]; ok {
				seen[id], all = true, append(all, id)
			}
		}
	}
	return all
}

// compress writes items in short, in their order: o1-o7,o9,a3.
func compress(items []string) string {
	var parts []string
	for i := 0; i < len(items); {
		letter, first := split(items[i])
		j := i + 1
		for ; j < len(items); j++ {
			if l, n := split(items[j]); l != letter || n != first+j-i {
				break
			}
		}
		part := items[i]
		if j > i+1 {
			part += "-" + items[j-1]
		}
		parts, i = append(parts, part), j
	}
	return strings.Join(parts, ",")
}

// expand reads what compress has written.
func expand(text string) ([]string, error) {
	var items []string
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		letter, from := split(first)
		other, to := split(last)
		if letter == "" || letter != other || to < from {
			return nil, fmt.Errorf("%q is neither one item nor a range", part)
		}
		for n := from; n <= to; n++ {
			items = append(items, fmt.Sprint(letter, n))
		}
	}
	return items, nil
}

// split parts the letter of an item from its number; what is no item has no letter.
func split(item string) (string, int) {
	if len(item) < 2 {
		return "", 0
	}
	n, err := strconv.Atoi(item[1:])
	if err != nil || !strings.Contains("oadk", item[:1]) {
		return "", 0
	}
	return item[:1], n
}
