// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/utils/clock"
)

// What health speaks of.
const (
	checkDriver = "driver"
	checkCaches = "caches"
	checkServer = "API server"
	noteRights  = "rights"
	noteWaiting = "waiting"
	noteNode    = "node"
	// noteYielding is about another process that does the same work.
	noteYielding = "another process"
)

// health is what the process knows about itself. A check is either fine or says what it is waiting for;
// a note tells of something that does not stand in the way of the main work.
type health struct {
	mu     sync.Mutex
	checks map[string]string
	notes  map[string]string
	leases map[string]*leaseLock
	pulse  *pulse
}

func newHealth() *health {
	return &health{
		checks: map[string]string{}, notes: map[string]string{}, leases: map[string]*leaseLock{}, pulse: &pulse{clock: clock.RealClock{}},
	}
}

// set records a check; no problem is an empty text.
func (h *health) set(name, problem string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks[name] = problem
}

// note records a note, and removes it when the text is empty.
func (h *health) note(name, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if text == "" {
		delete(h.notes, name)
		return
	}
	h.notes[name] = text
}

// lease adds a lease to what health is about, in place of an earlier campaign for it.
func (h *health) lease(lock *leaseLock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases[lock.key.Name] = lock
}

// overdue says which lease is held by this process and has not been renewed although its time, and some
// more, is over. Then nothing helps but a new process.
func (h *health) overdue() error {
	h.mu.Lock()
	leases := maps.Clone(h.leases)
	h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(leases)) {
		if err := leases[name].overdue(); err != nil {
			return fmt.Errorf("lease %s: %w", name, err)
		}
	}
	return nil
}

// serveLeases answers as the sidecars of old did.
func (h *health) serveLeases(w http.ResponseWriter, _ *http.Request) {
	if err := h.overdue(); err != nil {
		http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte("ok"))
}

// serveReady tells whether the process can do its work, or could at once if it led.
func (h *health) serveReady(w http.ResponseWriter, _ *http.Request) {
	text, ready := h.report()
	if err := h.overdue(); err != nil {
		text, ready = text+fmt.Sprintf("not ok: leader election: %v\n", err), false
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write([]byte(text))
}

func (h *health) report() (text string, ready bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lines strings.Builder
	ready = true
	if problem := h.pulse.problem(); problem != "" {
		ready = false
		fmt.Fprintf(&lines, "not ok: %s: %s\n", checkServer, problem)
	}
	for _, name := range slices.Sorted(maps.Keys(h.checks)) {
		problem := h.checks[name]
		if problem == "" {
			fmt.Fprintf(&lines, "ok: %s\n", name)
			continue
		}
		ready = false
		fmt.Fprintf(&lines, "not ok: %s: %s\n", name, problem)
	}
	for _, name := range slices.Sorted(maps.Keys(h.notes)) {
		fmt.Fprintf(&lines, "note: %s: %s\n", name, h.notes[name])
	}
	return lines.String(), ready
}
