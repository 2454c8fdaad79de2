// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

const (
	memoryMetric    = "process_resident_memory_bytes"
	goroutineMetric = "go_goroutines"
	heapMetric      = "go_memstats_heap_alloc_bytes"
	// heapProfile is what a process holds, after its collector of garbage has run.
	heapProfile = "/debug/pprof/heap?gc=1"
)

// episodeLives are how many objects live in one episode of a soak.
const episodeLives = 150

// sample is how large a process was at a moment of rest.
type sample struct{ memory, goroutines, heap float64 }

// TestSoak plays random lives and faults for a long time on processes that nobody ends, and compares their memory and goroutines at
// the end with those after they have warmed up. Catches one that keeps something of each object, each call or each watch.
//
// CSI_TANDEM_SOAK says for how long, 20m if it says nothing else; it has to be said, since nobody waits so long by accident.
// CSI_TANDEM_PROFILES names a folder for a heap profile of each process after each episode: two of them, compared by
// go tool pprof -base, name the line that holds what grows.
func TestSoak(t *testing.T) {
	if os.Getenv(soakVariable) == "" {
		t.Skip("takes long; set CSI_TANDEM_SOAK=20m, or run make soak")
	}
	s := theStage(t)
	first, length := seed(t), duration(soakVariable, 20*time.Minute)
	hasTime := deadline(length)
	// The log would fill the disk with what other tests look at.
	c, err := newCrew(t.Context(), s, "soak", "--retry-interval-start=100ms", "--retry-interval-max=2s", "--timeout=2s", "-v=2", "--enable-pprof")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}()
	show("soak: for %s, the first seed is %d", length, first)
	samples := map[stage.Program][]sample{}
	total := figures{hits: map[string]int{}}
	for episode := uint64(0); hasTime(); episode++ {
		text := write(first+episode, episodeLives)
		text.blows = slices.DeleteFunc(text.blows, func(b blow) bool { return b.what == "killed" || b.what == "asked to end" })
		p := c.play(t.Context(), text, patience)
		// The journals of the proxies grow in this process; each episode is judged by its own.
		c.clearJournals()
		for _, problem := range p.problems {
			t.Errorf("seed %d: %s", text.seed, p.plainly(problem))
		}
		if t.Failed() {
			return
		}
		total.add(p.figures)
		said := fmt.Sprintf("soak: episode %d: %s", episode+1, p.figures)
		for _, program := range programs {
			now, err := c.sample(t.Context(), program)
			if err == nil {
				err = c.saveProfile(t.Context(), program, episode)
			}
			if err != nil {
				t.Fatal(err)
			}
			samples[program] = append(samples[program], now)
			said += fmt.Sprintf("; %s %.1f MiB, of which it holds %.2f MiB, %.0f goroutines", program, now.memory/(1<<20), now.heap/(1<<20), now.goroutines)
		}
		show("%s", said)
	}
	show("soak: seeds from %d, %s, leaks 0, stuck 0", first, total)
	for _, program := range programs {
		compare(t, program, samples[program])
	}
}

func (f *figures) add(other figures) {
	f.made, f.removed, f.kills, f.calls, f.took = f.made+other.made, f.removed+other.removed, f.kills+other.kills, f.calls+other.calls, f.took+other.took
	f.settled += other.settled
	for what, n := range other.hits {
		f.hits[what] += n
	}
}

// saveProfile keeps what a process holds for a person to look at.
func (c *crew) saveProfile(ctx context.Context, program stage.Program, episode uint64) error {
	folder := os.Getenv("CSI_TANDEM_PROFILES")
	if folder == "" {
		return nil
	}
	said, err := c.page(ctx, program, heapProfile)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%03d.pprof", program, episode)), said, 0o600)
}

// sample reads the smallest of some looks. The collector of garbage comes when it likes, and is called for what the process holds.
func (c *crew) sample(ctx context.Context, program stage.Program) (sample, error) {
	var smallest sample
	for look := range 3 {
		if look > 0 && !rest(ctx, time.Second) {
			return smallest, ctx.Err()
		}
		if _, err := c.page(ctx, program, heapProfile); err != nil {
			return smallest, err
		}
		said, err := c.page(ctx, program, "/metrics")
		if err != nil {
			return smallest, err
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(said))
		if err != nil {
			return smallest, err
		}
		var now [3]float64
		for i, name := range []string{memoryMetric, goroutineMetric, heapMetric} {
			found := families[name].GetMetric()
			if len(found) != 1 {
				return smallest, fmt.Errorf("the %s tells no %s", program, name)
			}
			now[i] = found[0].GetGauge().GetValue()
		}
		if look == 0 || now[0] < smallest.memory {
			smallest.memory = now[0]
		}
		if look == 0 || now[1] < smallest.goroutines {
			smallest.goroutines = now[1]
		}
		if look == 0 || now[2] < smallest.heap {
			smallest.heap = now[2]
		}
	}
	return smallest, nil
}

// compare holds the last quarter against the second. The first is for warming up.
func compare(t *testing.T, program stage.Program, all []sample) {
	t.Helper()
	if len(all) < 8 {
		t.Logf("only %d episodes, which is too few to compare", len(all))
		return
	}
	memory, goroutines := quarters(all, func(s sample) float64 { return s.memory }), quarters(all, func(s sample) float64 { return s.goroutines })
	heap := quarters(all, func(s sample) float64 { return s.heap })
	show("soak: %s: %.1f MiB in the second quarter, %.1f MiB in the last; it holds %.2f and %.2f MiB; %.0f and %.0f goroutines",
		program, memory[0]/(1<<20), memory[1]/(1<<20), heap[0]/(1<<20), heap[1]/(1<<20), goroutines[0], goroutines[1])
	if memory[1] > 1.15*memory[0]+2<<20 {
		t.Errorf("the memory of the %s grows: %.0f bytes became %.0f", program, memory[0], memory[1])
	}
	// What is remembered of the last thousand objects is still filling up in a short run.
	if heap[1] > 1.1*heap[0]+1<<20 {
		t.Errorf("what the %s holds grows: %.0f bytes became %.0f", program, heap[0], heap[1])
	}
	if goroutines[1] > 1.1*goroutines[0]+3 {
		t.Errorf("the goroutines of the %s grow: %.0f became %.0f", program, goroutines[0], goroutines[1])
	}
}

// quarters are the medians of the second and of the last quarter.
func quarters(all []sample, of func(sample) float64) [2]float64 {
	median := func(some []sample) float64 {
		values := make([]float64, 0, len(some))
		for _, s := range some {
			values = append(values, of(s))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	n := len(all)
	return [2]float64{median(all[n/4 : n/2]), median(all[n*3/4:])}
}

func TestQuarters(t *testing.T) {
	var all []sample
	for n := range 16 {
		all = append(all, sample{memory: float64(n), goroutines: float64(100 - n)})
	}
	if got := quarters(all, func(s sample) float64 { return s.memory }); got != [2]float64{6, 14} {
		t.Errorf("got %v", got)
	}
}
