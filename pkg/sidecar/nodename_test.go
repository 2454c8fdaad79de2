// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestNodeThatIsNone: a process with the name of no node is ready, and nothing ever comes to it. Catches one that takes any name, one
// that looks once only, when the node is just about to join, and one that takes a question that failed for an answer.
func TestNodeThatIsNone(t *testing.T) {
	const text = "note: node: n9: no CSINode has the name that the variable NODE_NAME gives"
	for name, c := range map[string]struct {
		node  string
		world func(*kit.API)
		told  bool
	}{
		"a node":                     {"n1", func(*kit.API) {}, false},
		"the whole cluster":          {"", func(*kit.API) {}, false},
		"none":                       {"n9", func(*kit.API) {}, true},
		"who may not look":           {"n9", func(a *kit.API) { a.Deny("list", "csinodes") }, false},
		"an API server that is away": {"n9", func(a *kit.API) { a.Fail("list", "csinodes", errors.New("down"), 1) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			clk := testclock.NewFakeClock(time.Unix(0, 0))
			api := kit.NewAPI(clk, &kit.Log{})
			api.Put(kit.CSINode("n1", "zone"))
			c.world(api)
			program := sample()
			program.AsksPlace = true
			p := newProcess(program, &bytes.Buffer{}, &bytes.Buffer{})
			p.node = c.node
			l := &life{process: p, client: api, clock: clk, health: newHealth()}
			var log heard
			ctx, stop := context.WithCancel(log.context(t.Context()))
			defer stop()
			done := make(chan struct{})
			go func() { defer close(done); l.checkNode(ctx) }()
			report := func() string { said, _ := l.health.report(); return said }
			if c.told {
				for end := time.Now().Add(10 * time.Second); !strings.Contains(report(), text) && time.Now().Before(end); {
					if clk.HasWaiters() {
						clk.Step(lookAtNode)
					}
					time.Sleep(time.Millisecond)
				}
				if !strings.Contains(report(), text) || log.count("no CSINode has the name") != 1 {
					t.Fatalf("/readyz: %s, and %d lines in the log", report(), log.count("no CSINode"))
				}
				api.Put(kit.CSINode("n9", "zone"))
				for ended := false; !ended; {
					clk.Step(lookAtNode)
					select {
					case <-done:
						ended = true
					case <-time.After(time.Millisecond):
					}
				}
			}
			<-done
			if said := report(); strings.Contains(said, "node") {
				t.Errorf("/readyz: %s", said)
			}
		})
	}
}
