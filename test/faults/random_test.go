// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// hurried are flags with which waits are short, and all that could be logged is.
var hurried = []string{"--retry-interval-start=100ms", "--retry-interval-max=2s", "--timeout=2s", "-v=9"}

// verdict is what came of a run.
type verdict struct {
	problems []string
	figures  figures
	dir      string
}

// TestRandomFaults (B047, B061, B083): many objects live mixed lives under random faults of the API server, the driver and the processes.
// When the faults are over, everything that the driver stores belongs to an object (A1, A2), nothing waits for its end (A3) and
// nothing for its beginning that could have it, no process has ended by itself (A4), the driver was not called more often than
// there were reasons (A5), and no volume was deleted under a living claim (A6). Then all is deleted, and nothing is left.
//
// CSI_TANDEM_SEED plays the same script again, CSI_TANDEM_KEEP parts of it; a run that fails looks for the shortest part that
// fails as well, for as long as CSI_TANDEM_SHRINK says, and prints how to play it.
func TestRandomFaults(t *testing.T) {
	s := theStage(t)
	usual := 60
	if isFull() {
		usual = 1000
	}
	chosen, count := seed(t), number(t, objectsVariable, usual)
	whole := write(chosen, count)
	if kept := os.Getenv(keepVariable); kept != "" {
		items, err := expand(kept)
		if err != nil {
			t.Fatalf("%s: %v", keepVariable, err)
		}
		whole = whole.only(items)
	}
	v := run(t.Context(), s, whole, patience)
	show("faults: seed %d, %d objects: %s, leaks %d, stuck %d", chosen, len(whole.lives), v.figures, v.leaks(), v.stuck())
	show("faults: %s", v.figures.kinds())
	if len(v.problems) == 0 {
		return
	}
	for _, problem := range v.problems {
		t.Error(problem)
	}
	t.Logf("logs are in %s", v.dir)
	shrink(t, s, whole, v, count)
}

// leaks and stuck count the problems of the two kinds that matter most.
func (v *verdict) leaks() int { return v.counted("at the driver: ", "nobody knows of ") }

func (v *verdict) stuck() int {
	return v.counted(" is Terminating", " is Pending", " is not ready", " is Released", " is Available", "held by ")
}

func (v *verdict) counted(signs ...string) int {
	n := 0
	for _, problem := range v.problems {
		if slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(problem, sign) }) {
			n++
		}
	}
	return n
}

func (f figures) kinds() string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(f.hits)) {
		parts = append(parts, fmt.Sprintf("%s %d", what, f.hits[what]))
	}
	return strings.Join(parts, ", ")
}

// run plays a plot with a crew of its own and judges what is there in the end.
func run(ctx context.Context, s *stage.Stage, text plot, wait time.Duration) *verdict {
	c, err := newCrew(ctx, s, "faults", hurried...)
	if err != nil {
		return &verdict{problems: []string{err.Error()}}
	}
	p := c.play(ctx, text, wait)
	p.note(c.close())
	v := &verdict{figures: p.figures, dir: c.cast.Dir()}
	for _, problem := range p.problems {
		v.problems = append(v.problems, p.plainly(problem))
	}
	return v
}

// play plays a plot and judges its end.
func (c *crew) play(ctx context.Context, text plot, wait time.Duration) *play {
	p := &play{
		crew: c, text: text, ledger: newLedger(), patience: wait, forgotten: map[string]bool{},
		turns: map[stage.Program]*sync.Mutex{stage.Provisioner: {}, stage.Snapshotter: {}}, figures: figures{hits: map[string]int{}},
	}
	c.born, c.byHand = p.ledger.born, p.ledger.disown
	watching, stop := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { p.ledger.keep(watching, c.kube, c.driver) })
	p.perform(ctx)
	began := time.Now()
	p.judge(ctx)
	p.figures.settled = time.Since(began)
	stop()
	keeper.Wait()
	return p
}

// judge looks at what is there when all faults are over, deletes it, and looks at what is left.
func (p *play) judge(ctx context.Context) {
	p.settles(ctx, p.standing)
	if len(p.problems) > 0 {
		return // What is left would be the same again.
	}
	p.note(p.sweep(ctx))
	p.settles(ctx, func(v view) []string { return v.left() })
	for _, death := range p.deaths() {
		p.complain("A4: %s", death)
	}
	for _, wrong := range p.ledger.wrongDeletions(p.calls("DeleteVolume")) {
		p.complain("%s", wrong)
	}
	p.count()
	for _, leak := range p.secretLeaks(ctx) {
		p.complain("%s", leak)
	}
}

// settles waits until nothing is wrong any more, and complains of all that still is in the end.
func (p *play) settles(ctx context.Context, wrong func(view) []string) {
	for deadline := time.Now().Add(p.patience); ; {
		for _, name := range p.ledger.disowned() {
			_ = p.script.Forget(ctx, name) // It was not even made, mostly; or somebody came first.
		}
		var left []string
		if v, err := p.look(ctx); err != nil {
			left = []string{err.Error()}
		} else {
			left = wrong(v)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) || !rest(ctx, 500*time.Millisecond) {
			for _, one := range left {
				p.complain("after %s: %s", p.patience, one)
			}
			return
		}
	}
}

// sweep deletes all that a user has made.
func (p *play) sweep(ctx context.Context) error {
	v, err := p.look(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, o := range v.snapshots {
		failures = append(failures, p.deleteSnapshot(ctx, o.Name))
	}
	for _, l := range p.text.lives {
		if l.kind == imported {
			failures = append(failures, p.deleteImport(ctx, l.id))
		}
	}
	for _, o := range v.claims {
		p.ledger.deleted(o.Name)
		failures = append(failures, p.deleteClaim(ctx, o.Name))
	}
	p.figures.removed += len(v.snapshots) + len(v.claims)
	return errors.Join(failures...)
}

// count: A5, the driver was not called more often than there were reasons. A fault or a kill may cost one more call for each
// object that is in hand; what has no reason at all repeats itself without end, which is far above.
func (p *play) count() {
	perObject := map[string]int{}
	for _, program := range programs {
		calls := p.drivers[program].Calls()
		p.figures.calls += len(calls)
		for _, call := range calls {
			if slices.Contains(makers, call.Method) && call.IsAnswered && call.Code == 0 {
				perObject[call.Method+" "+call.Name]++
			}
		}
	}
	sum := 0
	for object, n := range perObject {
		sum += n
		if n > mostPerObject {
			p.complain("A5: %s succeeded %d times", object, n)
		}
	}
	if most := 4*p.figures.made + p.figures.faults() + 20*p.figures.kills; sum > most {
		p.complain("A5: %d calls succeeded, %d are enough for %s", sum, most, p.figures)
	}
}

// mostPerObject is how often one object may succeed: each time by a fault or a kill that struck right there. An answer without what it is about counts
// here too, and faults come in bursts: of a thousand objects one may well meet nine.
const mostPerObject = 16

var lifeName = regexp.MustCompile(`\bo\d+\b`)

// shrink looks for a short part of a plot that fails as well, and tells how to play it. What depends on the moment may fail only
// in one of several runs; so that is what it says.
func shrink(t *testing.T, s *stage.Stage, whole plot, v *verdict, count int) {
	t.Helper()
	budget := duration(shrinkVariable, 4*time.Minute)
	show("faults: looking for a shorter run that fails, for %s at most (%s)", budget, shrinkVariable)
	hasTime := deadline(budget)
	fails := func(items []string) bool {
		if !hasTime() {
			return false
		}
		again := run(t.Context(), s, whole.only(items), min(patience, 30*time.Second))
		show("faults: %d lives and faults: %d problems", len(items), len(again.problems))
		return len(again.problems) > 0
	}
	items := whole.items()
	named := lifeName.FindAllString(strings.Join(v.problems, "\n"), -1)
	if part := whole.family(named); len(part) > 0 && fails(part) {
		items = part
	}
	items = reduce(items, hasTime, fails)
	t.Logf("to play it again: %s", replay(whole, count, items))
	show("faults: to play the shortest run that failed: %s", replay(whole, count, items))
	if len(items) < 40 {
		for _, b := range whole.only(items).blows {
			t.Log(b)
		}
	}
}

// family are some lives with their ancestors, and every blow.
func (s plot) family(ids []string) []string {
	lives := s.withAncestors(ids)
	if len(lives) == 0 {
		return nil
	}
	var all []string
	for _, item := range s.items() {
		if !strings.HasPrefix(item, "o") || slices.Contains(lives, item) {
			all = append(all, item)
		}
	}
	return all
}
