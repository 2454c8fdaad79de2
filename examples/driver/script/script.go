// SPDX-License-Identifier: Apache-2.0

// Package script owns the faults that a test has asked for, and the log of the
// calls that came in. A real driver has no such package.
//
// It must not know the backend, nor how rules arrive; a rule is a plain value.
//
// On the walk of one CSI call it stands between the socket and the server: the
// recorder first, so that even refused calls are logged, and the faults right
// before the service method.
package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// Action is what a rule does to a call.
type Action string

// The actions. Those called Commit let the driver do its work first.
const (
	Fail       Action = "fail"
	CommitFail Action = "commit-then-fail"
	// Hang holds a call until its time is up, it is released, or the caller
	// gives up; in the last case nothing is done.
	Hang       Action = "hang"
	CommitHang Action = "commit-then-hang"
	// Lag delays a call and then does its work even if nobody waits any more.
	Lag Action = "lag"
	// Limit lets at most Parallel calls be at work; the others queue.
	Limit Action = "limit"
	// Work is what an object takes once: the time, of at most Parallel objects at
	// once, and whether or not anybody waits. Later calls for it find it done.
	Work Action = "work"
	// Distort spoils a good answer, see Distortion.
	Distort Action = "distort"
	// Unready keeps snapshots from being reported as ready.
	Unready     Action = "unready"
	Crash       Action = "crash"
	CommitCrash Action = "commit-then-crash"
)

// Distortion is one way of spoiling an answer.
type Distortion string

// The distortions.
const (
	NoVolume        Distortion = "no-volume"
	NoVolumeID      Distortion = "no-volume-id"
	NoContentSource Distortion = "no-content-source"
	TooSmall        Distortion = "too-small"
	NoSnapshot      Distortion = "no-snapshot"
	NoSnapshotID    Distortion = "no-snapshot-id"
)

// Rule is one line of a script.
type Rule struct {
	// ID is given by Add.
	ID     string `json:"id,omitempty"`
	Action Action `json:"action"`
	// Method is the short name of an RPC, such as CreateVolume; empty is any
	// RPC of the controller service.
	Method string `json:"method,omitempty"`
	// Match is a part of the name, the id or (GetCapacity) the segment, such
	// as zone=a, that the call is about; empty is any.
	Match string `json:"match,omitempty"`
	// Skip lets that many matching calls pass first.
	Skip int `json:"skip,omitempty"`
	// Times is how many calls are affected; zero means until released.
	Times int `json:"times,omitempty"`
	// Code and Message are for the failing actions; Code is a number.
	Code    codes.Code `json:"code,omitempty"`
	Message string     `json:"message,omitempty"`
	// Duration is for Hang (zero: until released), Lag, Work and Unready.
	Duration time.Duration `json:"duration,omitempty"`
	// Calls is for Unready: the snapshot is ready at the n-th look.
	Calls int `json:"calls,omitempty"`
	// Parallel is for Limit and Work.
	Parallel   int        `json:"parallel,omitempty"`
	Distortion Distortion `json:"distortion,omitempty"`
	// Hits counts the calls affected so far.
	Hits int `json:"hits"`
}

type rule struct {
	Rule
	seen     int
	released chan struct{}
	slots    chan struct{}
	looks    map[string]int
	worked   map[string]bool
}

// Script is safe for concurrent use.
type Script struct {
	now   func() time.Time
	crash func()

	mu     sync.Mutex
	rules  []*rule
	serial int
}

// New makes an empty script. Crash ends the process at once.
func New(now func() time.Time, crash func()) *Script {
	return &Script{now: now, crash: crash}
}

// Add appends a rule and returns its id. Rules are tried in their order.
func (s *Script) Add(r Rule) (string, error) {
	if err := r.validate(); err != nil {
		return "", fmt.Errorf("adding rule: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	r.ID, r.Hits = "r"+strconv.Itoa(s.serial), 0
	added := &rule{Rule: r, released: make(chan struct{}), looks: map[string]int{}, worked: map[string]bool{}}
	if r.Action == Limit || r.Action == Work {
		added.slots = make(chan struct{}, r.Parallel)
	}
	s.rules = append(s.rules, added)
	return r.ID, nil
}

func (r Rule) validate() error {
	if r.Skip < 0 || r.Times < 0 || r.Duration < 0 || r.Calls < 0 {
		return fmt.Errorf("a count or duration of %s is negative", r.Action)
	}
	if !knownMethod(r.Method) {
		return fmt.Errorf("no RPC is called %q", r.Method)
	}
	missing, ok := ingredients[r.Action]
	if !ok {
		return fmt.Errorf("no action is called %q", r.Action)
	}
	if what := missing(r); what != "" {
		return fmt.Errorf("%s needs %s", r.Action, what)
	}
	return nil
}

// ingredients says for each action what a rule lacks, if it lacks anything.
var ingredients = map[Action]func(Rule) string{
	Fail: lacksCode, CommitFail: lacksCode,
	Hang: nothing, CommitHang: nothing, Unready: nothing, Crash: nothing, CommitCrash: nothing,
	Lag: func(r Rule) string {
		if r.Duration == 0 {
			return "a duration"
		}
		return ""
	},
	Limit: func(r Rule) string {
		if r.Parallel < 1 {
			return "a number of parallel calls"
		}
		return ""
	},
	Work: func(r Rule) string {
		if r.Parallel < 1 || r.Duration == 0 {
			return "a duration and a number of objects at once"
		}
		return ""
	},
	Distort: func(r Rule) string {
		if _, ok := distortions[r.Distortion]; !ok {
			return fmt.Sprintf("a distortion, and %q is none", r.Distortion)
		}
		return ""
	},
}

func nothing(Rule) string { return "" }

func lacksCode(r Rule) string {
	if r.Code == codes.OK || r.Code > codes.Unauthenticated {
		return "the code of an error"
	}
	return ""
}

// Release takes a rule out and lets go of the calls that it holds.
func (s *Script) Release(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.rules, func(r *rule) bool { return r.ID == id })
	if i < 0 {
		return fmt.Errorf("releasing rule: there is no %q", id)
	}
	close(s.rules[i].released)
	s.rules = slices.Delete(s.rules, i, i+1)
	return nil
}

// Reset releases all rules.
func (s *Script) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		close(r.released)
	}
	s.rules = nil
}

// Rules lists the rules with their hits; used-up ones included.
func (s *Script) Rules() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Rule, 0, len(s.rules))
	for _, r := range s.rules {
		all = append(all, r.Rule)
	}
	return all
}

// take finds the rules of the given actions that apply to a call and counts
// it against them. With one set, the first that applies is enough.
func (s *Script) take(c call, one bool, actions ...Action) []*rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken []*rule
	for _, r := range s.rules {
		if !slices.Contains(actions, r.Action) || !r.covers(c) {
			continue
		}
		if r.seen++; r.seen <= r.Skip || (r.Times > 0 && r.Hits >= r.Times) {
			continue
		}
		r.Hits++
		taken = append(taken, r)
		if one {
			break
		}
	}
	return taken
}

func (r *rule) covers(c call) bool {
	if r.Method == "" && c.service != "Controller" || r.Method != "" && r.Method != c.method {
		return false
	}
	return r.Match == "" || slices.ContainsFunc(c.subjects, func(s string) bool { return strings.Contains(s, r.Match) })
}

// IsReady says whether a snapshot may be reported as ready; every question
// counts as one look at it.
func (s *Script) IsReady(name, id string, created time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ready := true
	for _, r := range s.rules {
		if r.Action != Unready || (r.Match != "" && !strings.Contains(name, r.Match) && !strings.Contains(id, r.Match)) {
			continue
		}
		r.looks[id]++
		byCalls := r.Calls > 0 && r.looks[id] >= r.Calls
		byTime := r.Duration > 0 && !s.now().Before(created.Add(r.Duration))
		if !byCalls && !byTime {
			r.Hits++
			ready = false
		}
	}
	return ready
}
