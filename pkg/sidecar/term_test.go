// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// filling is a cache that is filled after some time.
type filling struct {
	begin time.Time
	takes time.Duration
}

func (f filling) Run(context.Context) {}
func (f filling) HasSynced() bool     { return time.Since(f.begin) >= f.takes }
func (f filling) Explain() string     { return "" }

// What the first work does not need is listed after what it needs. Catches a start at which the first claim waits for the longest list of
// all, and one at which a list that never comes keeps the others away.
func TestWhatTheFirstWorkNeedsIsListedFirst(t *testing.T) {
	for title, c := range map[string]struct{ takes, want time.Duration }{
		"filled soon": {3 * time.Second, 3 * time.Second},
		"never":       {time.Hour, headStart},
		"none":        {0, 0},
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, begin := &life{clock: clock.RealClock{}}, time.Now()
				l.giveWay(t.Context(), []kube.Runner{filling{begin, c.takes}, filling{begin, 0}})
				if took := time.Since(begin); took != c.want {
					t.Errorf("waited %v, want %v", took, c.want)
				}
			})
		})
	}
	t.Run("the process ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, begin := &life{clock: clock.RealClock{}}, time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			l.giveWay(ctx, []kube.Runner{filling{begin, time.Hour}})
			if took := time.Since(begin); took != time.Second {
				t.Errorf("waited %v", took)
			}
		})
	})
}
