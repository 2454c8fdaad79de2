// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Result is what a run of the phases has found, as it is kept in a file.
type Result struct {
	Label string `json:"label"`
	// Machine says on what it was measured.
	Machine string `json:"machine"`
	Date    string `json:"date"`
	Flags   string `json:"flags,omitempty"`
	// Programs are those that were measured, in order.
	Programs []string `json:"programs"`
	Rows     []Row    `json:"phases"`
}

// Row is one phase.
type Row struct {
	Phase   string `json:"phase"`
	Objects int    `json:"objects"`
	// Done is the pace and the wait until the work of the programs was done; Bound until the claim was bound, where there is one.
	Done  Pace  `json:"done"`
	Bound *Pace `json:"bound,omitempty"`
	// Programs and ControlPlane are by name.
	Programs     map[string]Cost    `json:"programs,omitempty"`
	ControlPlane map[string]float64 `json:"controlPlaneSeconds,omitempty"`
	// Calls are those of the driver, for each object and for the one with most.
	Calls     float64 `json:"callsPerObject"`
	CallsMost int     `json:"callsOfOneObject"`
}

// Pace is how many objects were done in a second, and how long one took, in seconds.
type Pace struct {
	Rate float64 `json:"rate"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
}

// Cost is what one program took in a phase.
type Cost struct {
	Seconds float64 `json:"cpuSeconds"`
	// Peak is the largest amount of memory during the phase, in MiB.
	Peak     float64   `json:"peakMiB"`
	Requests *requests `json:"requests"`
}

// writes are all of a row, or those answered 409.
func (r Row) writes() (perObject float64) {
	return r.sum(func(q *requests) map[string]int { return q.Writes })
}

func (r Row) reads() (perObject float64) {
	return r.sum(func(q *requests) map[string]int { return q.Reads })
}

func (r Row) conflicts() (perObject float64) {
	return r.sum(func(q *requests) map[string]int { return q.Conflicts })
}

func (r Row) sum(of func(*requests) map[string]int) float64 {
	sum := 0
	for _, cost := range r.Programs {
		sum += total(of(cost.Requests))
	}
	return float64(sum) / float64(max(1, r.Objects))
}

// row finds a phase by its name.
func (r *Result) row(phase string) (Row, bool) {
	i := slices.IndexFunc(r.Rows, func(row Row) bool { return row.Phase == phase })
	if i < 0 {
		return Row{}, false
	}
	return r.Rows[i], true
}

// paceOf measures from the first begin to the last end. Waits are those of single objects.
func paceOf(begins, ends []time.Time) Pace {
	if len(begins) == 0 || len(begins) != len(ends) {
		return Pace{}
	}
	waits := make([]time.Duration, len(begins))
	for i := range begins {
		waits[i] = ends[i].Sub(begins[i])
	}
	slices.Sort(waits)
	took := slices.MaxFunc(ends, time.Time.Compare).Sub(slices.MinFunc(begins, time.Time.Compare))
	return Pace{
		Rate: float64(len(begins)) / max(took.Seconds(), 1e-9), P50: quantile(waits, 0.50).Seconds(), P99: quantile(waits, 0.99).Seconds(),
	}
}

// quantile is the smallest value that the share of all does not exceed.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	at := int(share*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// save writes into the folder for results.
func (o *options) save(name string, content []byte) (path string, err error) {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return "", fmt.Errorf("making the folder for results: %w", err)
	}
	path = filepath.Join(o.out, name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return "", fmt.Errorf("writing results: %w", err)
	}
	return path, nil
}

func (r *Result) encode() ([]byte, error) {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding results: %w", err)
	}
	return append(content, '\n'), nil
}

func decodeResult(content []byte) (*Result, error) {
	r := &Result{}
	if err := json.Unmarshal(content, r); err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	for _, row := range r.Rows {
		for name, cost := range row.Programs {
			if cost.Requests == nil {
				return nil, fmt.Errorf("reading results: phase %q says nothing of what the %s asked for", row.Phase, name)
			}
		}
	}
	return r, nil
}
