// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
)

// process is a program between its arguments and its exit code.
type process struct {
	Program
	name           string
	stdout, stderr io.Writer
	terminationLog string

	gates   *Gates
	logging *logsapi.LoggingConfiguration
	// unreachable are flags of logging that are accepted with their defaults only.
	unreachable []string
	version     bool
	// node is the one that is served, empty for all.
	node   string
	flags  *flag.FlagSet
	groups []group
}

// group is a FlagGroup with the names of its flags.
type group struct {
	title string
	flags []*flag.Flag
}

func newProcess(program Program, stdout, stderr io.Writer) *process {
	p := &process{
		Program: program, name: program.Name, stdout: stdout, stderr: stderr, terminationLog: terminationLog,
		gates: newGates(program.Gates), logging: logsapi.NewLoggingConfiguration(),
	}
	p.flags = flag.NewFlagSet(program.Name, flag.ContinueOnError)
	p.flags.SetOutput(io.Discard)
	for _, g := range p.flagGroups() {
		p.addGroup(g)
	}
	return p
}

// Titles of groups that are shown to some only: the first three are all that who writes looks for, the last two nobody does.
const (
	titleQuestion = "Question"
	titleDriver   = "Driver"
	titleServer   = "API server"
	titleMissing  = "Not in this build yet: "
	titleRetired  = "Retired, accepted and without effect"
)

func (p *process) flagGroups() []FlagGroup {
	all := append([]FlagGroup{}, p.Groups...)
	all = append(all, p.Options.groups()...)
	all = append(all, FlagGroup{"Process", p.addProcess}, FlagGroup{"Logging", p.addLogging})
	for _, m := range p.Missing {
		all = append(all, FlagGroup{titleMissing + m.Feature, m.add})
	}
	return append(all, FlagGroup{titleRetired, func(fs *flag.FlagSet) {
		addRetired(fs, p.Retired)
		addRetired(fs, klogFlags())
	}})
}

// addGroup declares flags in a set of their own first, to learn which belong together.
func (p *process) addGroup(g FlagGroup) {
	own := flag.NewFlagSet(g.Title, flag.ContinueOnError)
	g.Add(own)
	declared := group{title: g.Title}
	own.VisitAll(func(f *flag.Flag) {
		p.flags.Var(f.Value, f.Name, f.Usage)
		// Some values print differently once they are bound; the default is what was declared.
		p.flags.Lookup(f.Name).DefValue = f.DefValue
		declared.flags = append(declared.flags, p.flags.Lookup(f.Name))
	})
	if len(declared.flags) > 0 {
		p.groups = append(p.groups, declared)
	}
}

func (p *process) addProcess(fs *flag.FlagSet) {
	fs.Var(p.gates, "feature-gates", p.gates.usage())
	fs.Var(&maxprocs{}, "automaxprocs", "follow the CPU quota of the container, whatever the GOMAXPROCS variable says; without either the Go runtime follows the quota by itself")
	fs.BoolVar(&p.version, "version", false, "print the version and exit")
}

// parse reads the arguments. Done means that the process has nothing more to do.
func (p *process) parse(args []string) (done bool, err error) {
	if len(args) == 0 {
		return false, usage("called without even a name of its own")
	}
	p.name = filepath.Base(args[0])
	for name, value := range p.Presets[p.name] {
		if err := p.flags.Set(name, value); err != nil {
			return false, usage("preset --%s=%s: %w", name, value, err)
		}
		p.flags.Lookup(name).DefValue = value // as help shows it
	}
	if err := p.flags.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return true, p.help(p.stdout)
		}
		return false, p.explain(err)
	}
	if rest := p.flags.Args(); len(rest) > 0 {
		return false, p.unknownArgument(args[1:], rest[0])
	}
	if err := p.checkNumbers(p.flags); err != nil {
		return false, err
	}
	return p.begin()
}

// begin checks in the order in which the sidecars of old did, since each failure has its exit code.
func (p *process) begin() (done bool, err error) {
	if err := p.checkLogging(); err != nil {
		return false, err
	}
	if err := logsapi.ValidateAndApply(p.logging, nil); err != nil {
		return false, fmt.Errorf("logging flags: %w", err)
	}
	hush(klog.Background())
	klog.StartFlushDaemon(p.logging.FlushFrequency.Duration.Duration)
	warnings, err := p.gates.apply()
	if err != nil {
		return false, err
	}
	if err := p.readNode(); err != nil {
		return false, err
	}
	if p.version {
		_, err := fmt.Fprintf(p.stdout, "%s %s (%s)\n", p.name, p.Version, builtFrom())
		return true, err
	}
	if err := p.check(); err != nil {
		return false, err
	}
	logger := klog.Background()
	logger.Info("Starting", "program", p.Name, "version", p.Version)
	for _, w := range append(warnings, configWarnings(p.Options)...) {
		logger.Info("Warning: " + w)
	}
	warnRetired(logger, p.flags, append(klogFlags(), p.Retired...))
	warnMissing(logger, p.flags, p.Missing)
	return false, nil
}

func (p *process) check() error {
	for _, m := range p.Missing {
		if err := m.check(p.flags); err != nil {
			return err
		}
	}
	if err := p.Options.check(p.WithoutDriver); err != nil {
		return err
	}
	if p.mustElect() {
		election := p.Options.Election
		election.Enabled = true
		if err := election.check(); err != nil {
			return err
		}
	}
	for _, check := range []func() error{p.Validate, p.Inhabit} {
		if check == nil {
			continue
		}
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkNumbers refuses what can be read as a number and is none to reckon with.
func (p *process) checkNumbers(flags *flag.FlagSet) (err error) {
	flags.Visit(func(f *flag.Flag) {
		getter, ok := f.Value.(flag.Getter)
		if !ok {
			return
		}
		if n, ok := getter.Get().(float64); ok && (math.IsNaN(n) || math.IsInf(n, 0)) {
			err = usage("%s=%s: %s", dashed(f.Name), f.Value, p.wants(f.Name))
		}
	})
	return err
}

// typeOf names the type of a flag's value.
func typeOf(f *flag.Flag) string {
	getter, ok := f.Value.(flag.Getter)
	if !ok {
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			return "bool"
		}
		return "string"
	}
	switch getter.Get().(type) {
	case bool:
		return "bool"
	case int, int64:
		return "int"
	case uint, uint64, logsapi.VerbosityLevel:
		return "uint"
	case float64:
		return "float"
	case time.Duration:
		return "duration"
	}
	return "string"
}

// maxprocs is the flag that sets GOMAXPROCS from the CPU quota.
type maxprocs struct{ before int }

// String implements flag.Value.
func (m *maxprocs) String() string { return strconv.FormatBool(m != nil && m.before > 0) }

// IsBoolFlag lets the flag stand without a value.
func (m *maxprocs) IsBoolFlag() bool { return true }

// Set implements flag.Value.
func (m *maxprocs) Set(text string) error {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("use true or false")
	}
	switch {
	case on && m.before == 0:
		m.before = runtime.GOMAXPROCS(0)
		runtime.SetDefaultGOMAXPROCS()
	case !on && m.before > 0:
		runtime.GOMAXPROCS(m.before)
		m.before = 0
	}
	return nil
}
