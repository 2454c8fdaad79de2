// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"testing"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// cached is a cache in some state.
type cached struct {
	name    string
	filled  bool
	failure error
}

func (c *cached) Run(context.Context)     {}
func (c *cached) HasSynced() bool         { return c.filled }
func (c *cached) Failure() error          { return c.failure }
func (c *cached) Resource() kube.Resource { return kube.Resource{} }
func (c *cached) Namespace() string       { return "" }
func (c *cached) Explain() string {
	if c.failure != nil {
		return "cannot list " + c.name
	}
	return "waiting for " + c.name
}

// TestWhatWaitsForTheRest: caches that only a part of the work takes are filled after the others. Catches a log that sends people
// to look at them while nothing is wrong but with what all waits for.
func TestWhatWaitsForTheRest(t *testing.T) {
	down := errors.New("down")
	for name, c := range map[string]struct {
		need, other      cached
		hinders, besides string
	}{
		"all is there":                  {cached{filled: true}, cached{filled: true}, "", ""},
		"one is missing":                {cached{filled: true}, cached{name: "b"}, "", "waiting for b"},
		"it waits for another":          {cached{name: "a", failure: down}, cached{name: "b"}, "cannot list a", ""},
		"both fail, each by its own":    {cached{name: "a", failure: down}, cached{name: "b", failure: down}, "cannot list a", "cannot list b"},
		"it fails, and the rest waits":  {cached{name: "a"}, cached{name: "b", failure: down}, "waiting for a", "cannot list b"},
		"all that counts is there":      {cached{filled: true}, cached{name: "b", failure: down}, "", "cannot list b"},
		"what counts is on its way yet": {cached{name: "a"}, cached{filled: true}, "waiting for a", ""},
	} {
		env := &Env{informers: []watched{&c.need, &c.other}}
		if hinders, besides := (&life{}).unfilled(env, []kube.Runner{&c.need}); hinders != c.hinders || besides != c.besides {
			t.Errorf("%s: %q and %q, want %q and %q", name, hinders, besides, c.hinders, c.besides)
		}
	}
}
