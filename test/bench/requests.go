// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
)

// requests are what one program asked of the API server about objects, by what it was. Answers 409 are counted apart: they
// say how often two writers met.
type requests struct {
	Agent     string         `json:"agent"`
	Writes    map[string]int `json:"writes"`
	Reads     map[string]int `json:"reads"`
	Conflicts map[string]int `json:"conflicts,omitempty"`
}

func newRequests() *requests {
	return &requests{Writes: map[string]int{}, Reads: map[string]int{}, Conflicts: map[string]int{}}
}

// upkeep are resources by which a process lives and asks for its rights, whatever it works on.
var upkeep = []string{"leases", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}

// ledger sorts what the API server wrote down by who asked for it.
type ledger struct {
	log  string
	at   int64
	user map[string]*requests
}

// newLedger begins at the end of what is written by now.
func (b *bench) newLedger() (*ledger, error) {
	l := &ledger{log: b.stage.Cluster.AuditLog(), user: map[string]*requests{}}
	var err error
	l.at, err = controlplane.ReadAudit(l.log, b.audited, func(controlplane.AuditLine) {})
	b.audited = l.at
	return l, err
}

func (l *ledger) take(line controlplane.AuditLine) {
	resource := line.Object.Resource
	if resource == "" || slices.Contains(upkeep, resource) {
		return
	}
	r := l.user[line.User.Username]
	if r == nil {
		r = newRequests()
		l.user[line.User.Username] = r
	}
	r.Agent, _, _ = strings.Cut(line.UserAgent, " ")
	r.take(line)
}

func (r *requests) take(line controlplane.AuditLine) {
	what := line.Verb + " " + line.Object.Resource
	if line.Object.Subresource != "" {
		what += "/" + line.Object.Subresource
	}
	if line.Response.Code >= http.StatusBadRequest && line.Response.Code != http.StatusConflict {
		what = fmt.Sprintf("%s (%d)", what, line.Response.Code)
	}
	switch {
	case line.Verb == "watch":
	case line.Verb == "get" || line.Verb == "list":
		r.Reads[what]++
	case line.Response.Code == http.StatusConflict:
		r.Conflicts[what]++
	default:
		r.Writes[what]++
	}
}

// quiet is how long the programs must have asked for nothing until what they did is over.
const quiet = 1500 * time.Millisecond

// settle follows the log until the programs are quiet: the server writes a moment after it has answered, and events trail.
func (b *bench) settle(ctx context.Context, l *ledger) error {
	ticker := time.NewTicker(quiet / 10)
	defer ticker.Stop()
	limit := time.Now().Add(b.o.patience)
	for last, before := time.Now(), -1; time.Since(last) < quiet; {
		if err := l.read(); err != nil {
			return err
		}
		sum := 0
		for _, m := range b.crew {
			sum += l.of(m.user).sum()
		}
		if sum != before {
			last, before = time.Now(), sum
		}
		if time.Now().After(limit) {
			return fmt.Errorf("the programs do not come to rest: %d requests and no end", sum)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	b.audited = l.at
	return nil
}

func (l *ledger) read() (err error) {
	l.at, err = controlplane.ReadAudit(l.log, l.at, l.take)
	return err
}

func (l *ledger) of(user string) *requests {
	if r := l.user[user]; r != nil {
		return r
	}
	return newRequests()
}

func (r *requests) sum() int { return total(r.Writes) + total(r.Reads) + total(r.Conflicts) }

func total(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// list writes counts per object, largest first.
func list(counts map[string]int, objects int) string {
	whats := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var all []string
	for _, what := range whats {
		all = append(all, fmt.Sprintf("%s %.2f", what, float64(counts[what])/float64(objects)))
	}
	return strings.Join(all, ", ")
}
