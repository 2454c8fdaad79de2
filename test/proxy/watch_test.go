// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"strings"
	"testing"
	"time"
)

// next reads lines until there is an error.
func next(lines *bufio.Reader) <-chan string {
	out := make(chan string, 10)
	go func() {
		defer close(out)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			out <- line
		}
	}()
	return out
}

// received is false at the end of the lines.
func received(t *testing.T, lines <-chan string) (string, bool) {
	t.Helper()
	select {
	case line, ok := <-lines:
		return line, ok
	case <-soon(t).Done():
		t.Fatal("neither a line nor an end came")
		return "", false
	}
}

func mustCreate(t *testing.T, b *bench, name string) {
	t.Helper()
	if code, err := b.create(t.Context(), name); err != nil || code != 201 {
		t.Fatalf("creating %s: %d, %v", name, code, err)
	}
}

func TestHeldWatchIsOldAndCatchesUp(t *testing.T) {
	b := newBench(t)
	lines := next(b.watch(t))
	held := b.api.HoldWatches(Match{Resource: "configmaps"})
	mustCreate(t, b, "a")
	if err := held.AwaitHits(soon(t), 1); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, b, "b")
	select {
	case line := <-lines:
		t.Errorf("got %s", line)
	default:
	}
	held.Release()
	for _, name := range []string{"a", "b"} {
		if line, _ := received(t, lines); !strings.Contains(line, `"name":"`+name+`"`) {
			t.Errorf("got %q, want %s", line, name)
		}
	}
	mustCreate(t, b, "c")
	if line, _ := received(t, lines); !strings.Contains(line, `"name":"c"`) {
		t.Errorf("got %q after the release", line)
	}
}

func TestLagDelaysOnlyWhatItMatches(t *testing.T) {
	b := newBench(t)
	const d = 40 * time.Millisecond
	lines := next(b.watch(t))
	lag := b.api.LagWatches(Match{Resource: "configmaps", Agent: "tester"}, d)
	other := b.api.HoldWatches(Match{Resource: "secrets"})
	began := time.Now()
	mustCreate(t, b, "a")
	received(t, lines)
	if waited := time.Since(began); waited < d {
		t.Errorf("an event came after %v, before its time", waited)
	}
	if lag.Hits() != 1 || other.Hits() != 0 {
		t.Errorf("hit %d and %d times", lag.Hits(), other.Hits())
	}
	b.api.ReleaseAll()
	mustCreate(t, b, "b")
	received(t, lines)
	if lag.Hits() != 1 {
		t.Error("a released lag was hit")
	}
}

func TestCutWatches(t *testing.T) {
	b := newBench(t)
	lines := next(b.watch(t))
	if n := b.api.CutWatches("secrets"); n != 0 || b.api.Watches("configmaps") != 1 {
		t.Errorf("cut %d watches of something else", n)
	}
	held := b.api.HoldWatches(Match{})
	mustCreate(t, b, "a")
	if err := held.AwaitHits(soon(t), 1); err != nil {
		t.Fatal(err)
	}
	if n := b.api.CutWatches("configmaps"); n != 1 {
		t.Errorf("cut %d watches, want 1", n)
	}
	if line, ok := received(t, lines); ok {
		t.Errorf("got %q from a watch that was cut", line)
	}
	held.Release()
	again := next(b.watch(t))
	mustCreate(t, b, "b")
	if line, _ := received(t, again); !strings.Contains(line, `"name":"b"`) {
		t.Errorf("got %q from the next watch", line)
	}
	if n := b.api.CutWatches(""); n != 1 {
		t.Errorf("cut %d of all watches, want 1", n)
	}
}

func TestWatchThatTheServerEndsIsEnded(t *testing.T) {
	b := newBench(t)
	lines := next(b.watch(t))
	held := b.api.HoldWatches(Match{})
	mustCreate(t, b, "a")
	if err := held.AwaitHits(soon(t), 1); err != nil {
		t.Fatal(err)
	}
	b.server.CloseClientConnections()
	held.Release()
	if line, _ := received(t, lines); !strings.Contains(line, `"name":"a"`) {
		t.Errorf("got %q: what had come before the end is to be delivered", line)
	}
	if line, ok := received(t, lines); ok {
		t.Errorf("got %q after the end", line)
	}
}

func TestWatcherThatLeavesIsForgotten(t *testing.T) {
	b := newBench(t)
	ctx, leave := context.WithCancel(t.Context())
	b.api.HoldWatches(Match{})
	go func() { _, _, _ = b.send(ctx, "GET", maps+"?watch=true", "") }()
	if _, err := b.api.Await(soon(t), func(q Request) bool { return q.Verb == "watch" && q.Code == 200 }); err != nil {
		t.Fatal(err)
	}
	leave()
	if _, err := b.api.Await(soon(t), func(q Request) bool { return !q.Finished.IsZero() }); err != nil {
		t.Fatal(err)
	}
	if n := b.api.Watches(""); n != 0 {
		t.Errorf("%d watches are left", n)
	}
}

func TestCutConnections(t *testing.T) {
	b := newBench(t)
	lines := next(b.watch(t))
	b.api.CutConnections()
	if line, ok := received(t, lines); ok {
		t.Errorf("got %q over a connection that was cut", line)
	}
	mustCreate(t, b, "a")
}
