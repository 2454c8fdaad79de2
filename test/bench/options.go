// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// mode is one thing that can be measured.
type mode struct {
	says string
	// hasNodes is for a driver that is on simulated nodes, each of them a place of its own.
	hasNodes bool
	// hasMetrics is for programs that are asked for their metrics.
	hasMetrics bool
	// isUncounted is for a mode in which nobody looks at requests: writing them down takes time.
	isUncounted bool
}

var modes = map[string]mode{
	"phases":   {says: "the lives of volumes and snapshots, many at once: rates, waits, requests, calls"},
	"latency":  {says: "one claim at a time on an idle cluster"},
	"capacity": {says: "publishing storage capacity for many nodes: pace, polls, a new node, an outage of the driver", hasNodes: true, hasMetrics: true},
	"memory":   {says: "memory beside many volumes, snapshots and nodes, and how soon a claim is served after a start", hasNodes: true, isUncounted: true},
}

// options are the flags.
type options struct {
	mode     string
	label    string
	out      string
	against  string
	objects  int
	writers  int
	rounds   int
	lag      time.Duration
	patience time.Duration

	nodes, volumes, foreign, snapshots int
	poll, outage                       time.Duration

	provisioner, snapshotter           string
	provisionerFlags, snapshotterFlags string
	others                             others

	document       string
	audit          string
	profiles       string
	profileSeconds int
}

func newOptions() *options {
	return &options{
		mode: "phases", label: "csi-tandem", out: "out/bench", objects: 300, writers: 100, rounds: 20, patience: 10 * time.Minute,
		nodes: 5000, volumes: 20000, snapshots: 5000, poll: 20 * time.Second, outage: time.Minute, profileSeconds: 3,
	}
}

// AddFlags binds the flags.
func (o *options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.mode, "mode", o.mode, "what is measured: "+strings.Join(slices.Sorted(maps.Keys(modes)), ", "))
	fs.StringVar(&o.label, "label", o.label, "what the results are called, in tables and as files")
	fs.StringVar(&o.out, "out", o.out, "`folder` for the results")
	fs.StringVar(&o.against, "against", o.against, "results (`label.json`) of an earlier run of phases to draw beside these; without it the published figures of the incumbents")
	fs.IntVar(&o.objects, "n", o.objects, "objects of each phase, all made at once")
	fs.IntVar(&o.writers, "writers", o.writers, "requests of this program at a time")
	fs.IntVar(&o.rounds, "rounds", o.rounds, "claims of the mode latency")
	fs.DurationVar(&o.lag, "lag", o.lag, "how long each call to the driver takes")
	fs.DurationVar(&o.patience, "patience", o.patience, "how long a phase may take")
	fs.IntVar(&o.nodes, "nodes", o.nodes, "simulated nodes of the modes capacity and memory")
	fs.IntVar(&o.volumes, "volumes", o.volumes, "bound volumes of the mode memory")
	fs.IntVar(&o.foreign, "foreign", o.foreign, "bound volumes of another driver, of the mode memory")
	fs.IntVar(&o.snapshots, "snapshots", o.snapshots, "snapshots of the mode memory")
	fs.DurationVar(&o.poll, "poll", o.poll, "capacity poll interval while polls are counted, of the mode capacity")
	fs.DurationVar(&o.outage, "outage", o.outage, "how long the driver fails, of the mode capacity")
	fs.StringVar(&o.provisioner, "provisioner", o.provisioner, "`program` to run as provisioner instead of the one of this checkout")
	fs.StringVar(&o.snapshotter, "snapshotter", o.snapshotter, "`program` to run as snapshotter instead of the one of this checkout")
	fs.StringVar(&o.provisionerFlags, "provisioner-flags", o.provisionerFlags, "more `flags` of the provisioner, separated by spaces")
	fs.StringVar(&o.snapshotterFlags, "snapshotter-flags", o.snapshotterFlags, "more `flags` of the snapshotter, separated by spaces")
	fs.Var(&o.others, "with", "`name=program flags…` to run beside, with a kubeconfig and no driver, such as a snapshot-controller; repeatable")
	fs.StringVar(&o.document, "document", o.document, "markdown `file` in which the figures of this mode are replaced, between <!-- bench:MODE --> and <!-- /bench -->; a picture goes beside it")
	fs.StringVar(&o.audit, "audit", o.audit, "`file` to leave the API server's audit log in, for asking who wrote what when")
	fs.StringVar(&o.profiles, "profiles", o.profiles, "`folder` for processor and heap profiles of the programs and of the API server; none without it")
	fs.IntVar(&o.profileSeconds, "profile-seconds", o.profileSeconds, "length of the processor profile that is taken at the begin of each phase")
}

// parse reads the arguments; help goes to out.
func parse(args []string, out io.Writer) (*options, error) {
	o := newOptions()
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.Usage = func() {
		fmt.Fprint(out, "Measures the pair, or the programs that are named, on a real control plane.\n\n")
		for _, name := range slices.Sorted(maps.Keys(modes)) {
			fmt.Fprintf(out, "  -mode %-9s %s\n", name, modes[name].says)
		}
		fmt.Fprintln(out)
		fs.PrintDefaults()
	}
	o.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return o, o.check(fs.Args())
}

func (o *options) check(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q; see -help", rest[0])
	}
	if _, known := modes[o.mode]; !known {
		return fmt.Errorf("-mode=%s: there are %s", o.mode, strings.Join(slices.Sorted(maps.Keys(modes)), ", "))
	}
	if o.label == "" || strings.ContainsAny(o.label, "/\\ ") {
		return fmt.Errorf("-label=%q: it becomes the name of a file", o.label)
	}
	return o.checkAmounts()
}

func (o *options) checkAmounts() error {
	for name, n := range map[string]int{"n": o.objects, "writers": o.writers, "rounds": o.rounds, "nodes": o.nodes, "profile-seconds": o.profileSeconds} {
		if n < 1 {
			return fmt.Errorf("-%s=%d: use 1 or more", name, n)
		}
	}
	if min(o.volumes, o.foreign, o.snapshots) < 0 || o.snapshots > o.volumes {
		return fmt.Errorf("-volumes=%d -foreign=%d -snapshots=%d: none may be negative, and there is one snapshot of a volume at most", o.volumes, o.foreign, o.snapshots)
	}
	if min(o.patience, o.poll, o.outage) <= 0 || o.lag < 0 {
		return fmt.Errorf("-patience, -poll and -outage must be positive, and -lag not negative")
	}
	return nil
}

// isOwn is false when one of the programs is not of this checkout; budgets are then nobody's.
func (o *options) isOwn() bool {
	return o.provisioner == "" && o.snapshotter == "" && len(o.others) == 0
}

// other is a program beside the pair.
type other struct {
	name, path string
	args       []string
}

// others is a repeatable flag.
type others []other

// String implements flag.Value.
func (l *others) String() string {
	var all []string
	for _, p := range *l {
		all = append(all, p.name+"="+strings.Join(append([]string{p.path}, p.args...), " "))
	}
	return strings.Join(all, "; ")
}

// Set implements flag.Value.
func (l *others) Set(text string) error {
	name, command, _ := strings.Cut(text, "=")
	words := strings.Fields(command)
	if name == "" || len(words) == 0 {
		return fmt.Errorf("%q is not like name=program flags", text)
	}
	*l = append(*l, other{name: name, path: words[0], args: words[1:]})
	return nil
}
