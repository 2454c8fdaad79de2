// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// The time between two kills is long enough for a sidecar to come up and begin, and too short to finish much. It grows from
// kill to kill: on a machine that is too slow for the first lives, the later ones are long enough.
const (
	shortestLife = 100 * time.Millisecond
	longestLife  = 1200 * time.Millisecond
	longestAway  = 300 * time.Millisecond
	growth       = 1.08
)

// Chaos kills processes with -9 at random moments and starts them again.
type Chaos struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu    sync.Mutex
	kills map[string]int
	err   error
}

// StartChaos begins to kill. The same seed kills after the same times, though not at the same points of the program.
func StartChaos(ctx context.Context, seed uint64, victims ...*Process) *Chaos {
	ctx, cancel := context.WithCancel(ctx)
	c := &Chaos{cancel: cancel, kills: map[string]int{}}
	for i, victim := range victims {
		moments := rand.New(rand.NewPCG(seed, uint64(i)))
		c.done.Go(func() { c.haunt(ctx, victim, moments) })
	}
	return c
}

func (c *Chaos) haunt(ctx context.Context, victim *Process, moments *rand.Rand) {
	between := func(shortest, longest time.Duration) time.Duration {
		return shortest + time.Duration(moments.Int64N(int64(longest-shortest)))
	}
	longest := longestLife
	for rest(ctx, between(shortestLife, longest)) {
		longest = time.Duration(float64(longest) * growth)
		victim.Kill()
		// Also when it is all over meanwhile: whoever was killed is started again.
		rest(ctx, between(0, longestAway))
		err := victim.Start()
		c.mu.Lock()
		c.kills[victim.Name]++
		if c.err == nil {
			c.err = err
		}
		c.mu.Unlock()
	}
}

// rest waits, and says whether there was time for it.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Stop ends the killing, with every victim running, and tells how often each was killed.
func (c *Chaos) Stop() (map[string]int, error) {
	c.cancel()
	c.done.Wait()
	return c.kills, c.err
}
