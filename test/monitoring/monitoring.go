// SPDX-License-Identifier: Apache-2.0

// Package monitoring evaluates the alerts and the dashboard of deploy/monitoring with the engine of Prometheus.
//
// It owns films: what both programs have answered to scrapes while something was staged, laid out in time so that minutes of an
// alert do not have to be waited for.
//
// It must not know what was staged, nor how; a film says which alerts it is about.
//
// It stands outside the walks, in a module of its own, so that Prometheus weighs on nobody else.
package monitoring

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
)

// Stretch is how much slower a film is shown than it was taken: a second of it is ten minutes.
const Stretch = 600

// interval is how often Prometheus scrapes. Between two pictures of a film the older one is seen again.
const interval = 30 * time.Second

// expectFile in the folder of a film names the alerts that it is about, one in a line.
const expectFile = "expect"

// Film is a number of scrapes, in order.
type Film struct {
	Name string
	// Expect are the alerts that have to fire, and no others, sorted.
	Expect []string
	// Start and End are the first and the last moment.
	Start, End time.Time
	// series are by their labels, and byName the same by the name of the metric.
	series map[string]*series
	byName map[string][]*series
}

type series struct {
	labels labels.Labels
	points []point
}

type point struct {
	at    int64
	value float64
}

// picture is one scrape of one process.
type picture struct {
	at       time.Duration
	instance string
	// text is nil where the process did not answer.
	text []byte
}

// beginning is when each film begins: any time will do.
var beginning = time.Unix(1_800_000_000, 0).UTC()

// LoadFilm reads a folder. Its files are called as MILLISECONDS-INSTANCE.prom, or .down for a scrape without an answer.
func LoadFilm(dir string) (*Film, error) {
	f := &Film{Name: filepath.Base(dir), Start: beginning, End: beginning, series: map[string]*series{}, byName: map[string][]*series{}}
	expected, err := os.ReadFile(filepath.Join(dir, expectFile))
	if err != nil {
		return nil, fmt.Errorf("reading what film %s is about: %w", f.Name, err)
	}
	f.Expect = strings.Fields(string(expected))
	slices.Sort(f.Expect)
	pictures, err := loadPictures(dir)
	if err != nil {
		return nil, fmt.Errorf("reading film %s: %w", f.Name, err)
	}
	for instance, taken := range pictures {
		var before map[string]sample
		for i, p := range taken {
			until := p.at*Stretch + interval
			if i+1 < len(taken) {
				until = taken[i+1].at * Stretch
			}
			samples, err := p.samples()
			if err != nil {
				return nil, fmt.Errorf("film %s, %s after %s: %w", f.Name, instance, p.at, err)
			}
			f.show(samples, before, p.at*Stretch, until)
			before = samples
		}
	}
	if len(f.series) == 0 {
		return nil, fmt.Errorf("film %s is empty", f.Name)
	}
	return f, nil
}

func loadPictures(dir string) (map[string][]picture, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	pictures := map[string][]picture{}
	for _, entry := range entries {
		kind := filepath.Ext(entry.Name())
		number, instance, ok := strings.Cut(strings.TrimSuffix(entry.Name(), kind), "-")
		millis, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue
		}
		p := picture{at: time.Duration(millis) * time.Millisecond, instance: instance}
		if kind == ".prom" {
			if p.text, err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
				return nil, err
			}
		}
		pictures[instance] = append(pictures[instance], p)
	}
	for _, taken := range pictures {
		slices.SortFunc(taken, func(a, b picture) int { return int(a.at - b.at) })
	}
	return pictures, nil
}

// samples are what a picture shows, and that there was an answer or none.
func (p picture) samples() (map[string]sample, error) {
	up := 0.0
	samples := map[string]sample{}
	if p.text != nil {
		up = 1
		var err error
		if samples, err = parse(p.text, p.instance); err != nil {
			return nil, err
		}
	}
	target := targetLabels(p.instance)
	target.Set(labels.MetricName, "up")
	all := target.Labels()
	samples[all.String()] = sample{all, up}
	return samples, nil
}

// show lays out one picture until the next one. What was there before and is no more ends at once, as it does for Prometheus.
func (f *Film) show(samples, before map[string]sample, from, until time.Duration) {
	for key, s := range before {
		if _, ok := samples[key]; !ok {
			f.add(key, sample{s.labels, math.Float64frombits(value.StaleNaN)}, beginning.Add(from))
		}
	}
	for at := from; at < until; at += interval {
		moment := beginning.Add(at)
		for key, s := range samples {
			f.add(key, s, moment)
		}
		if moment.After(f.End) {
			f.End = moment
		}
	}
}

func (f *Film) add(key string, s sample, at time.Time) {
	known := f.series[key]
	if known == nil {
		known = &series{labels: s.labels}
		f.series[key] = known
		name := s.labels.Get(labels.MetricName)
		f.byName[name] = append(f.byName[name], known)
	}
	known.points = append(known.points, point{at.UnixMilli(), s.value})
}

type sample struct {
	labels labels.Labels
	value  float64
}

// targetLabels are those that Prometheus gives to each series of a pod that it has found by Kubernetes.
func targetLabels(instance string) *labels.Builder {
	b := labels.NewBuilder(labels.EmptyLabels())
	return b.Set("job", "csi-tandem").Set("namespace", "driver").Set("pod", instance+"-0").Set("instance", instance)
}

// parse reads what a process has answered. Spans of time that the programs measure grow as slowly as the film is shown.
func parse(text []byte, instance string) (map[string]sample, error) {
	parser, err := textparse.New(text, "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return nil, err
	}
	samples := map[string]sample{}
	for {
		entry, err := parser.Next()
		switch {
		case errors.Is(err, io.EOF):
			return samples, nil
		case err != nil:
			return nil, err
		case entry != textparse.EntrySeries:
			continue
		}
		var own labels.Labels
		parser.Labels(&own)
		_, _, number := parser.Series()
		b := targetLabels(instance)
		own.Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
		if isSpan(own.Get(labels.MetricName)) {
			number *= Stretch
		}
		all := b.Labels()
		samples[all.String()] = sample{all, number}
	}
}

// isSpan tells the gauges that hold how long something has been so.
func isSpan(name string) bool {
	return strings.HasPrefix(name, "csi_tandem_") && strings.HasSuffix(name, "_seconds")
}
