// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// shownRows is how many objects of a queue are shown; the oldest ones say most.
const shownRows = 100

// page is what the page at / shows. It names objects and repeats errors, as the logs do, and knows no secret.
type page struct {
	Program, Version, Build string
	Started, Up             string
	Driver, Node, Holder    string
	Health                  []healthLine
	Leases                  []leaseLine
	Queues                  []queueView
	Calls                   []throttle.Flow
	Failures                []failureView
	Tree                    []branchView
	MoreBranches            int
	HasTree                 bool
	Lack                    string
	Paths                   []string
	Waiting                 string
}

type healthLine struct{ State, Text string }

type leaseLine struct {
	Name  string
	Leads bool
}

type queueView struct {
	Kind, Name string
	Counts     []count
	Rows       []rowView
	More       int
}

type count struct {
	State string
	N     int
}

type rowView struct {
	Object, Age, State, Step, Why string
	Failures                      int
}

type failureView struct{ Kind, Object, Ago, Step, Why string }

func (l *life) servePage(w http.ResponseWriter, r *http.Request) {
	var text bytes.Buffer
	if err := pageTemplate.Execute(&text, l.buildPage()); err != nil {
		klog.FromContext(r.Context()).Error(err, "The page could not be made")
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	// There is nothing to load: what an object is called must never become something that runs.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	_, _ = w.Write(text.Bytes())
}

func (l *life) buildPage() page {
	now := l.clock.Now()
	p := page{
		Program: l.Program.Name, Version: l.Version, Build: builtFrom(), Holder: l.holder,
		Started: l.started.UTC().Format(time.RFC3339), Up: ago(now, l.started), Health: l.healthLines(), Leases: l.leaseLines(), Paths: l.paths(),
	}
	s := l.shown.Load()
	if s == nil {
		p.Waiting = "Nothing is worked on yet: the driver is awaited, or the rooms are being set up."
		return p
	}
	p.Driver, p.Node = s.env.DriverName, s.env.Node
	if s.env.Calls != nil {
		p.Calls = s.env.Calls.Flows()
	}
	for _, room := range s.rooms {
		status := s.status(room)
		p.Queues = append(p.Queues, l.viewQueue(now, room.Kind, status))
		for _, f := range status.Failures {
			p.Failures = append(p.Failures, failureView{room.Kind, objectName(f.Key), ago(now, f.At), f.Step, f.Why})
		}
	}
	if s.env.index != nil {
		p.Tree, p.MoreBranches = viewTree(s.env.index.Tree(), s.viewSpaces(now))
		p.HasTree = true
	}
	if s.lack != nil {
		p.Lack = s.lack()
	}
	return p
}

func (l *life) viewQueue(now time.Time, kind string, status reconcile.Status) queueView {
	view := queueView{Kind: kind, Name: status.Queue}
	for _, w := range status.Work[:min(len(status.Work), shownRows)] {
		view.Rows = append(view.Rows, rowView{
			Object: objectName(w.Key), Age: ago(now, w.Since), State: stateText(now, stateOf(w), w), Step: withoutWhy(l.say(w.Step), w.Why), Why: w.Why, Failures: w.Failures,
		})
	}
	counts := countStates(status)
	view.More = -len(view.Rows)
	for _, state := range states {
		view.Counts = append(view.Counts, count{state, counts[state]})
		view.More += counts[state]
	}
	return view
}

// decided is a time to wait as it was when that was decided, which beside the time that is left is one too many.
var decided = regexp.MustCompile(`^Waits \d\S*$`)

// withoutWhy leaves out of the words for a step what stands below them.
func withoutWhy(said, why string) string {
	below := strings.TrimSuffix(why, ".") + "; " // what would help may stand behind it
	rest, tail, found := strings.Cut(strings.TrimSuffix(said, "."), ": ")
	for found && !strings.HasPrefix(below, tail+"; ") {
		var more string
		more, tail, found = strings.Cut(tail, ": ")
		rest += ": " + more
	}
	switch {
	case why == "" || !found:
		return said
	case decided.MatchString(rest):
		return "Waits:"
	}
	return rest + ":"
}

// stateText says what an object is doing, and for how long.
func stateText(now time.Time, state string, w reconcile.Work) string {
	switch {
	case state == stateWorking:
		return "working for " + ago(now, w.Begun)
	case state == stateQueued:
		return "waits for a worker"
	case w.Next.IsZero():
		return state + ", until something changes"
	case !now.Before(w.Next):
		return state + ", next look now"
	}
	return state + ", next look in " + ago(w.Next, now)
}

// say puts a step into words, if somebody knows how.
func (l *life) say(step any) string {
	switch {
	case step == nil:
		return ""
	case l.Say != nil:
		return l.Say(step)
	}
	return reconcile.Work{Step: step}.StepName()
}

// objectName leaves out the UID, which only tells namesakes apart.
func objectName(key reconcile.Key) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// ago is a time span as people say it.
func ago(now, then time.Time) string {
	d := max(0, now.Sub(then))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// healthLines are those of /readyz.
func (l *life) healthLines() []healthLine {
	text, _ := l.health.report()
	var lines []healthLine
	for line := range strings.Lines(text) {
		state, what, _ := strings.Cut(strings.TrimSpace(line), ": ")
		lines = append(lines, healthLine{state, what})
	}
	return lines
}

// leaseLines are read from the metric that tells of them anyway.
func (l *life) leaseLines() []leaseLine {
	families, err := l.meters.Gather()
	if err != nil {
		return nil
	}
	var lines []leaseLine
	for _, family := range families {
		if family.GetName() != "leader_election_master_status" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "name" {
					lines = append(lines, leaseLine{label.GetValue(), m.GetGauge().GetValue() > 0})
				}
			}
		}
	}
	return lines
}

// paths are what else there is to look at.
func (l *life) paths() []string {
	paths := []string{flagzPath, "/healthz", l.Options.HTTP.MetricsPath, "/readyz", statuszPath}
	if l.Options.HTTP.Pprof {
		paths = append(paths, "/debug/pprof/")
	}
	return paths
}
