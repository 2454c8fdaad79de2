// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// What was told is remembered of thousands of objects, whatever a driver says of them. Catches a memory that holds the messages: in a
// cluster with much coming and going it was the only thing that grew for hours.
func TestToldEventsTakeLittle(t *testing.T) {
	w := NewEventWriter(nil, "c", "i", testingclock.NewFakeClock(time.Unix(1e9, 0)))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for n := range eventMemory {
		uid, message := fmt.Sprintf("%036d", n), fmt.Sprintf("rpc error: code = Internal desc = %s%d", strings.Repeat("x", 900), n)
		if _, isNew := w.isNew(digest(uid, "Failed"), message); !isNew {
			t.Fatal("not told of object", n)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 || len(w.last) != eventMemory {
		t.Errorf("%d events take %d bytes", len(w.last), grown)
	}
}

// Where there is no room any more, what the API server has forgotten goes first. Catches a memory that forgets all at once: every
// object that waits would be told of again.
func TestOldEventsGoFirst(t *testing.T) {
	clk := testingclock.NewFakeClock(time.Unix(1e9, 0))
	w := NewEventWriter(nil, "c", "i", clk)
	key := func(n int) uint64 { return digest(fmt.Sprint(n), "Failed") }
	for n := range eventMemory - 100 {
		w.isNew(key(n), "no")
	}
	clk.Step(eventRepeat + time.Second)
	for n := range 200 {
		w.isNew(key(eventMemory+n), "no")
	}
	if _, isNew := w.isNew(key(eventMemory+50), "no"); isNew || len(w.last) > 200 {
		t.Errorf("told again, or %d are remembered", len(w.last))
	}
	for n := range 3 * eventMemory {
		w.isNew(key(n), "no")
	}
	if len(w.last) > eventMemory {
		t.Errorf("%d are remembered", len(w.last))
	}
}
