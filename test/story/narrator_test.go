// SPDX-License-Identifier: Apache-2.0

package story

import (
	"strings"
	"testing"
	"time"
)

func TestTableLooksLikeKubectl(t *testing.T) {
	var out strings.Builder
	NewNarrator(&out).table("POD STATUS NODE", []string{"a-long-name", "Running", "worker-1"}, []string{"b", "Pending", "-"})
	want := "        POD           STATUS    NODE\n        a-long-name   Running   worker-1\n        b             Pending   -\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestPlainLinesHaveNoColours(t *testing.T) {
	var out strings.Builder
	n := NewNarrator(&out)
	n.act(1, "Title", "says")
	n.step("1.1", "step")
	n.Say("a\nb")
	n.command("kubectl", "remark")
	n.quote("somebody", "words")
	n.waiting("it is there", "it is not", 7*time.Second)
	n.done("it is there", time.Second)
	n.skip("reason")
	if strings.ContainsAny(out.String(), "\x1b\r") {
		t.Errorf("there are control characters in %q", out.String())
	}
	for _, want := range []string{"=== 1. Title", "1.1 step", "$ kubectl   # remark", "somebody says: words", "waiting for 7s until it is there: it is not", "✓   it is there (1.0s)", "skipped: reason"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
}

func TestPlainLinesAreNotRepeatedSoon(t *testing.T) {
	var out strings.Builder
	n := NewNarrator(&out)
	for seconds := range 41 {
		why := "it is not"
		if seconds == 20 {
			why = "it is elsewhere"
		}
		n.waiting("it is there", why, time.Duration(seconds)*time.Second)
	}
	want := []string{"5s until it is there: it is not", "20s until it is there: it is elsewhere", "21s until it is there: it is not"}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("said\n%s", out.String())
	}
	for i, line := range lines {
		if !strings.HasSuffix(line, want[i]) {
			t.Errorf("line %d is %q, want %q at its end", i, line, want[i])
		}
	}
	n.waiting("it is there", "it is not", 51*time.Second)
	if !strings.HasSuffix(out.String(), "51s until it is there: it is not\n") {
		t.Errorf("silent for half a minute:\n%s", out.String())
	}
	n.waiting("it is there", "it is not", 5*time.Second)
	if !strings.HasSuffix(out.String(), "waiting for 5s until it is there: it is not\n") {
		t.Errorf("the next one who waits hears nothing:\n%s", out.String())
	}
}

func TestTheMovingLineIsWiped(t *testing.T) {
	var out strings.Builder
	n := NewTerminalNarrator(&out)
	n.waiting("it is there", "", time.Second)
	n.done("it is there", time.Second)
	_, after, _ := strings.Cut(out.String(), "waiting until it is there")
	if !strings.Contains(after, "\r\x1b[K") {
		t.Errorf("the line stays: %q", out.String())
	}
}
