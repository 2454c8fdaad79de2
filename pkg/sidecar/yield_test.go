// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

type metAnother struct{}

func (metAnother) Error() string            { return "another one works" }
func (metAnother) YieldsFor() time.Duration { return time.Minute }

// TestYield: who has met another process with the same work stands back for a while, shows it, and begins again; it does not end,
// and all other errors are none of its business. Catches two replicas without election that end each other in a crash loop.
func TestYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &life{clock: clock.RealClock{}, health: newHealth()}
		began := time.Now()
		shown := make(chan string, 1)
		time.AfterFunc(30*time.Second, func() { text, _ := l.health.report(); shown <- text })
		if !l.yield(t.Context(), fmt.Errorf("claims: %w", metAnother{})) || time.Since(began) != time.Minute {
			t.Error("back after", time.Since(began))
		}
		if text := <-shown; !strings.Contains(text, "another one works") {
			t.Errorf("meanwhile health says %q", text)
		}
		if text, _ := l.health.report(); strings.Contains(text, "another one works") {
			t.Errorf("afterwards health says %q", text)
		}
		began = time.Now()
		if l.yield(t.Context(), errors.New("something else")) || l.yield(t.Context(), nil) {
			t.Error("yields to nobody")
		}
		if l.yield(t.Context(), errors.Join(errLeaseLost, metAnother{})) || time.Since(began) != 0 {
			t.Error("waits although the lease keeps it out")
		}
		ending, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began = time.Now()
		if l.yield(ending, metAnother{}) || time.Since(began) != time.Second {
			t.Error("the end is held up")
		}
		if err := unlessEnding(ending, fmt.Errorf("claims: %w", metAnother{})); err != nil {
			t.Error("the end has failed:", err) // as if something were wrong with who stands back
		}
		if err := unlessEnding(t.Context(), metAnother{}); err == nil {
			t.Error("nobody told it to end")
		}
	})
}

// TestWhoMeetsTheNextLeader: work that has met another process has lost its lease if that one holds it, and stands by at once; where the lease is its
// own, the other is one without a lease. Catches a process that was asleep, and is no standby for a minute.
func TestWhoMeetsTheNextLeader(t *testing.T) {
	for title, row := range map[string]struct {
		robs   bool
		met    error
		isLost bool
		holder string
	}{
		"the next leader":              {true, metAnother{}, true, "two"},
		"one without a lease":          {false, metAnother{}, false, ""},
		"work that failed by itself":   {true, errors.New("something else"), false, "two"},
		"work that ended of its own":   {true, nil, false, "two"},
		"an API server that is silent": {false, metAnother{}, false, "one"},
		"an end at the same time":      {false, metAnother{}, false, ""},
	} {
		t.Run(title, func(t *testing.T) {
			l := newLocks(t)
			lock := l.candidate("one")
			lock.recorder = kit.NewRecorder(nil)
			c := &campaign{election: Election{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 5 * time.Second}, lock: lock}
			ctx, end := context.WithCancel(t.Context())
			defer end()
			err := c.lead(ctx, func(context.Context) error {
				if strings.HasPrefix(title, "an end") {
					end()
				}
				l.clock.Step(time.Second)
				if row.robs {
					kit.Edit(l.api, leaseKey, func(o *coordinationv1.Lease) { o.Spec.HolderIdentity = ptr.To("two") })
				}
				if row.holder == "one" {
					l.api.Fail("patch", "leases", apierrors.NewTimeoutError("slow", 1), 2)
				}
				return row.met
			})
			if errors.Is(err, errLeaseLost) != row.isLost || !errors.Is(err, row.met) {
				t.Errorf("ended with %v", err)
			}
			if found, _ := kit.Read[*coordinationv1.Lease](l.api, leaseKey); holderOf(found) != row.holder {
				t.Errorf("held by %q", holderOf(found))
			}
		})
	}
}
