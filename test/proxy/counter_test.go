// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func connected() bool { return true }

func TestEffectsAreNumberedInTheirOrder(t *testing.T) {
	c := NewCounter()
	for i, verb := range []string{"create", "CreateVolume", "patch"} {
		ticket, err := c.begin(t.Context(), Effect{Verb: verb, Client: "p", Key: "k"}, connected)
		if err != nil || ticket.effect.Number != i+1 {
			t.Fatalf("got %v, %v", ticket, err)
		}
		if err := c.end(ticket, "OK"); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, e := range c.Effects() {
		got = append(got, e.String())
	}
	if diff := cmp.Diff([]string{"1: p create k → OK", "2: p CreateVolume k → OK", "3: p patch k → OK"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	c.Reset()
	if c.Count() != 0 {
		t.Errorf("%d effects are left", c.Count())
	}
}

func TestClientsThatAreGoneHaveNoEffects(t *testing.T) {
	c := NewCounter()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.begin(gone, Effect{}, connected); !errors.Is(err, errClientGone) {
		t.Errorf("got %v", err)
	}
	if _, err := c.begin(t.Context(), Effect{}, func() bool { return false }); !errors.Is(err, errClientGone) {
		t.Errorf("got %v", err)
	}
	if c.Count() != 0 {
		t.Errorf("%d were numbered", c.Count())
	}
}

// Whatever comes while a cut goes on waits for its end, and is then judged by whether its client still lives.
func TestNothingPassesDuringACut(t *testing.T) {
	for _, when := range []When{BeforeSent, AfterEffect} {
		t.Run(when.String(), func(t *testing.T) {
			c := NewCounter()
			var mu sync.Mutex
			isAlive, others := true, make(chan error, 20)
			lives := func() bool { mu.Lock(); defer mu.Unlock(); return isAlive }
			done := c.CutAt(2, when, func(e Effect) {
				if e.Number != 2 {
					t.Errorf("cut at %v", e)
				}
				for range cap(others) {
					go func() {
						_, err := c.begin(t.Context(), Effect{}, lives)
						others <- err
					}()
				}
				mu.Lock()
				defer mu.Unlock()
				isAlive = false
			})
			if first, err := c.begin(t.Context(), Effect{}, lives); err != nil || c.end(first, "OK") != nil {
				t.Fatal("the effect before the cut was cut")
			}
			second, err := c.begin(t.Context(), Effect{}, lives)
			if when == AfterEffect && err == nil {
				err = c.end(second, "OK")
			}
			if !errors.Is(err, errSwallowed) {
				t.Errorf("the cut effect ended with %v", err)
			}
			if e := <-done; e.Number != 2 || (e.Answer == "OK") != (when == AfterEffect) {
				t.Errorf("told of %v", e)
			}
			for range cap(others) {
				if err := <-others; !errors.Is(err, errClientGone) {
					t.Errorf("another ended with %v", err)
				}
			}
			if c.Count() != 2 {
				t.Errorf("%d effects, want 2", c.Count())
			}
		})
	}
}

func TestHeldEffectsOfTheLivingGoOn(t *testing.T) {
	c := NewCounter()
	passed := make(chan error, 1)
	done := c.CutAt(1, AfterEffect, nil)
	first, err := c.begin(t.Context(), Effect{}, connected)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		other, err := c.begin(t.Context(), Effect{}, connected)
		if err == nil {
			err = c.end(other, "OK")
		}
		passed <- err
	}()
	if err := c.end(first, lostAnswer); !errors.Is(err, errSwallowed) {
		t.Errorf("the cut effect ended with %v", err)
	}
	if err := <-passed; err != nil {
		t.Errorf("the other ended with %v", err)
	}
	if e := <-done; e.Answer != lostAnswer {
		t.Errorf("told of %v", e)
	}
}

func TestWaitingForACutEndsWithTheClient(t *testing.T) {
	c := NewCounter()
	c.CutAt(1, AfterEffect, nil)
	first, err := c.begin(t.Context(), Effect{}, connected)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.begin(ctx, Effect{}, connected)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, errClientGone) {
		t.Errorf("got %v", err)
	}
	if err := c.end(first, "OK"); !errors.Is(err, errSwallowed) {
		t.Errorf("got %v", err)
	}
}

func TestCutThatGivesUpHalfwayLetsOthersGoOn(t *testing.T) {
	c := NewCounter()
	c.CutAt(1, BeforeSent, func(Effect) { panic("a test that failed") })
	func() {
		defer func() { _ = recover() }()
		_, _ = c.begin(t.Context(), Effect{}, connected)
	}()
	if _, err := c.begin(t.Context(), Effect{}, connected); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestSeveralCuts(t *testing.T) {
	c := NewCounter()
	var order []string
	for _, n := range []int{3, 1, 9} {
		c.CutAt(n, BeforeSent, func(e Effect) { order = append(order, fmt.Sprint(e.Number)) })
	}
	for range 4 {
		_, _ = c.begin(t.Context(), Effect{}, connected)
	}
	if diff := cmp.Diff([]string{"1", "3"}, order); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
