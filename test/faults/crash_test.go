// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/csi-tandem/csi-tandem/test/proxy"
)

// lanes is how many rounds are played at the same time, each with a crew of its own: a round waits more than it works.
const lanes = 2

// prompt makes new tries come soon, so that what is waited for is the work and not the pauses.
var prompt = []string{"--retry-interval-start=100ms", "--retry-interval-max=1s", "--timeout=5s", "-v=4"}

// study is what is known of the lives that nobody disturbs.
type study struct {
	resting string
	ends    map[*scenario]string
	effects map[*scenario][]proxy.Effect
}

// TestCrashAtEveryStep (B003, B005): both sidecars are ended around each effect of each kind of life, before it is sent and after it
// took effect but before its answer, with -9 and with -TERM, and also with the object deleted while nobody runs. The end is
// that of a life that nobody disturbed, in every field, and the driver stores exactly what belongs to it. Catches one that
// makes a volume under a new name when it starts again, one that forgets a call whose answer it never saw, and one that takes
// a finalizer off before what it guards is done.
//
// CSI_TANDEM_FULL=1 tries every way at every effect; otherwise each effect meets some of them, chosen by the seed.
func TestCrashAtEveryStep(t *testing.T) {
	s := theStage(t)
	chosen := seed(t)
	began := time.Now()
	crews := make([]*crew, lanes)
	for i := range crews {
		c, err := newCrew(t.Context(), s, fmt.Sprint("crash", string(rune('a'+i))), prompt...)
		if err != nil {
			t.Fatal(err)
		}
		crews[i] = c
		defer func() {
			if err := crews[i].close(); err != nil {
				t.Error(err)
			}
		}()
		if err := c.makeBase(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	st, err := crews[0].study(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jobs := plan(st, chosen, isFull())
	tally := newTally()
	playAll(t, crews, jobs, st, tally)
	tally.print(st)
	verdict := "nothing leaked, nothing stuck"
	if t.Failed() {
		verdict = "not all ended as they should"
	}
	show("crash: seed %d, %d rounds, %d kills survived, %s, %s", chosen, len(jobs), tally.total(), verdict, time.Since(began).Round(time.Second))
	if t.Failed() {
		return
	}
	tally.check(t, st)
	for _, c := range crews {
		for _, death := range c.deaths() {
			t.Errorf("A4: %s", death)
		}
		for _, leak := range c.secretLeaks(t.Context()) {
			t.Error(leak)
		}
	}
}

// makeBase makes what others are made from.
func (c *crew) makeBase(ctx context.Context) error {
	if err := c.makeClaim(ctx, base, nil); err != nil {
		return err
	}
	if err := c.makeSnapshot(ctx, base, base); err != nil {
		return err
	}
	return c.awaitCalm(ctx, "the base is there", calm)
}

// study plays each life once in peace.
func (c *crew) study(ctx context.Context) (*study, error) {
	st := &study{ends: map[*scenario]string{}, effects: map[*scenario][]proxy.Effect{}}
	v, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	if st.resting, err = c.portrait(v, "nothing"); err != nil {
		return nil, err
	}
	for i := range scenarios {
		sc := &scenarios[i]
		name := fmt.Sprint("peace", i)
		if st.ends[sc], st.effects[sc], err = c.undisturbed(ctx, sc, name); err != nil {
			return nil, fmt.Errorf("%s in peace: %w", sc.name, err)
		}
		if sc.undo == nil {
			continue
		}
		if err := sc.undo(ctx, c, name); err != nil {
			return nil, err
		}
		r := &round{crew: c, name: name}
		if err := r.awaitPortrait(ctx, st.resting); err != nil {
			return nil, fmt.Errorf("undoing %s in peace: %w", sc.name, err)
		}
	}
	return st, nil
}

// plan lists the rounds. Around each effect there are six ways to be disturbed; a short run takes two of them.
func plan(st *study, seed uint64, full bool) []job {
	order := rand.New(rand.NewPCG(seed, 0))
	var jobs []job
	for i := range scenarios {
		sc := &scenarios[i]
		for n := 1; n <= len(st.effects[sc]); n++ {
			var ways []job
			for _, when := range []proxy.When{proxy.BeforeSent, proxy.AfterEffect} {
				ways = append(ways, job{sc, n, when, kill}, job{sc, n, when, term})
				if sc.undo != nil {
					ways = append(ways, job{sc, n, when, absent})
				}
			}
			order.Shuffle(len(ways), func(a, b int) { ways[a], ways[b] = ways[b], ways[a] })
			if !full {
				ways = ways[:2]
			}
			jobs = append(jobs, ways...)
		}
	}
	return jobs
}

// playAll plays the rounds, several at once. What a round that has failed left is in the way, so that its lane goes on with
// another crew; with many that fail nobody learns more.
func playAll(t *testing.T, crews []*crew, jobs []job, st *study, tally *tally) {
	t.Helper()
	queue := make(chan job, len(jobs))
	for _, j := range jobs {
		queue <- j
	}
	close(queue)
	var lanes sync.WaitGroup
	for i := range crews {
		lanes.Go(func() {
			number, failed := 0, 0
			for j := range queue {
				number++
				c := crews[i]
				r := &round{crew: c, job: j, name: fmt.Sprint("life", number)}
				err := r.play(t.Context(), st.ends[j.scenario], st.resting)
				if err == nil {
					tally.note(r)
					continue
				}
				t.Errorf("%s (%s)\nthe cut was at %v\neffects: %v\n%v", j, c.cast.Dir(), r.struck, c.counter.Effects(), err)
				if failed++; failed == mostFailed {
					return
				}
				if crews[i], err = c.replace(t.Context()); err != nil {
					t.Errorf("after a failed round: %v", err)
					return
				}
			}
		})
	}
	lanes.Wait()
}

const mostFailed = 6

func (c *crew) replace(ctx context.Context) (*crew, error) {
	if err := c.close(); err != nil {
		return c, err
	}
	next, err := newCrew(ctx, c.stage, strings.TrimRight(c.ns, "0123456789"), prompt...)
	if err == nil {
		err = next.makeBase(ctx)
	}
	if err != nil {
		return c, err
	}
	return next, nil
}

// tally counts what was survived.
type tally struct {
	mu       sync.Mutex
	survived map[*scenario]map[how]int
	played   map[*scenario]int
}

func newTally() *tally {
	return &tally{survived: map[*scenario]map[how]int{}, played: map[*scenario]int{}}
}

func (y *tally) note(r *round) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.played[r.scenario]++
	if r.struck == nil {
		return
	}
	if y.survived[r.scenario] == nil {
		y.survived[r.scenario] = map[how]int{}
	}
	y.survived[r.scenario][r.how]++
}

func (y *tally) total() int {
	sum := 0
	for _, ways := range y.survived {
		for how, n := range ways {
			sum += n
			if how == absent {
				sum += n // Both died.
			}
		}
	}
	return sum
}

func (y *tally) print(st *study) {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "life\teffects\trounds\t-9 survived\t-TERM survived\tdeleted while nobody ran")
	for i := range scenarios {
		sc := &scenarios[i]
		ways := y.survived[sc]
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\n", sc.name, len(st.effects[sc]), y.played[sc], ways[kill], ways[term], ways[absent])
	}
	_ = table.Flush() // It is a string.
	for line := range strings.Lines(text.String()) {
		show("%s", strings.TrimRight(line, "\n"))
	}
}

// check: rounds whose cut was not reached prove nothing. The last effect of a life may be saved by another order of things.
func (y *tally) check(t *testing.T, st *study) {
	t.Helper()
	for sc, played := range y.played {
		reached := 0
		for _, n := range y.survived[sc] {
			reached += n
		}
		if missed := played - reached; missed > 2+played/5 {
			t.Errorf("%s: %d of %d rounds met no cut; undisturbed it has %v", sc.name, missed, played, st.effects[sc])
		}
	}
}
