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

	"k8s.io/utils/clock"
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
		if l.yield(t.Context(), errors.New("something else")) || l.yield(t.Context(), nil) {
			t.Error("yields to nobody")
		}
		ending, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began = time.Now()
		if l.yield(ending, metAnother{}) || time.Since(began) != time.Second {
			t.Error("the end is held up")
		}
	})
}
