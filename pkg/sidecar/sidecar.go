// SPDX-License-Identifier: Apache-2.0

// Package sidecar owns the life of a process: flags, clients, the connection to the driver, caches,
// HTTP, leader election, signals and exit codes. Both programs are a Program value handed to Main.
//
// It must not know any room: what runs under its roof arrives as Runnables, and it decides nothing about
// storage.
//
// It stands around every walk: before it, until the caches that a room reads from are filled and its
// lease is held; and after it, when the keys in hand are finished before the lease is given back.
package sidecar

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// Program is everything that one of the programs is, apart from how any process lives.
type Program struct {
	// Name is the program's own, and Version what the linker stamped.
	Name, Version string
	// Component is the source of its events; "%s" in it stands for the driver's name.
	Component string
	// Manifest is the file with a role of all its rights, for the messages that say one is missing. Components are the
	// folders that add some of them to the bases, by the plural of what they are rights on.
	Manifest   string
	Components map[string]string

	// Options are the flags that both programs have, with this program's defaults.
	Options *Options
	// Groups are the flags of the rooms, in the order of the help text.
	Groups []FlagGroup
	// Missing are features, known by their flags, that this build does not have.
	Missing []Missing
	// Retired are flags of older sidecars that manifests still carry.
	Retired []Flag
	// Gates are the feature gates.
	Gates []Gate
	// Presets are flag values for the program when it is called by another name.
	Presets map[string]map[string]string
	// Validate refuses values of the rooms' flags; it runs after parsing.
	Validate func() error
	// Inhabit refuses a pod that lacks what the flags need; it runs last, and never for a question, which is asked elsewhere.
	Inhabit func() error
	// WithoutDriver refuses, after parsing, an empty --csi-address. Where it returns nil the process runs without a driver;
	// where it is nil itself, that never is.
	WithoutDriver func() error

	// PerNode tells, after parsing, whether the process serves one node, and AsksPlace that the driver is asked
	// where it runs then. MustElect tells whether some runnable leads whatever --leader-election says.
	PerNode   func() bool
	AsksPlace bool
	MustElect func() bool

	// Lease names the lease of the runnables that name none.
	Lease func(driver string) string
	// IsMigrated tells the drivers that replace a part of Kubernetes itself: their metrics say of each call
	// whether it was for something from before. Nil means that none does.
	IsMigrated func(driver string) bool
	// Requires are capabilities without which the program has nothing to do.
	Requires []capability.Controller
	// Rights are what the rooms do with the API beyond the watches, which declare themselves.
	Rights []Right
	// Setup builds what runs. It is called again, with a new Env, when a lost lease or a right that came
	// later made an end of what ran.
	Setup func(ctx context.Context, env *Env) ([]Runnable, error)

	// Say puts a step of one of the rooms' machines into words; nil leaves it at its name.
	Say func(step any) string

	// Commands are what the program does instead when its first argument names one.
	Commands []Command
}

// FlagGroup is one heading of the help text and the flags below it.
type FlagGroup struct {
	Title string
	Add   func(*flag.FlagSet)
}

// Runnable is something that works while the process leads.
type Runnable struct {
	Name string
	// Lease is the lease to hold meanwhile; empty means the program's own.
	Lease string
	// Lead says whether it has to lead.
	Lead Lead
	// Needs are the caches to be filled before. Nil means all that Setup asked for.
	Needs []kube.Runner
	// Optional work begins whenever its caches are there, and holds up nobody until then.
	Optional bool
	// Kind is the kind of the objects that it works on, and Status tells which of them it has not finished with;
	// nil where there are none.
	Kind   string
	Status func() reconcile.Status
	// Spaces tells how much room there is where; nil where nobody asks.
	Spaces func() []Space
	// Lack says what is missing for there to be any work; empty where nothing is, and nil where that is never so.
	Lack func() string
	// Run works until the context ends, and finishes what it has in hand.
	Run func(ctx context.Context) error
}

// Main is a program's whole life, from its arguments (with its own name first) to its exit code. The end
// of the context counts as a SIGTERM.
func Main(ctx context.Context, program Program, args []string, stdout, stderr io.Writer) int {
	p := newProcess(program, stdout, stderr)
	if len(args) > 1 && args[1] == completionName {
		p.name = filepath.Base(args[0])
		return p.exit(p.completion(args[2:]))
	}
	if command := p.asked(args); command != nil {
		return p.exit(p.answer(ctx, command, args))
	}
	done, err := p.parse(args)
	if err != nil || done {
		return p.exit(err)
	}
	return p.exit(p.live(ctx))
}

// sameSignal is how soon after the first a signal is still the same: terminals and the timeout command
// send it to the process and to its group.
const sameSignal = 500 * time.Millisecond

// live runs until the work ends by itself or is told to end. Who sends the signal twice means it: then
// nothing is waited for.
func (p *process) live(ctx context.Context) error {
	fitMemory(klog.FromContext(ctx), os.DirFS("/"), os.Getenv)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	return obey(ctx, signals, p.run)
}

// obey runs until it ends by itself, and tells it to end at the first signal.
func obey(ctx context.Context, signals <-chan os.Signal, run func(context.Context) error) error {
	logger := klog.FromContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	result := make(chan error, 1)
	go func() { result <- run(ctx) }()
	var asked time.Time
	for {
		select {
		case err := <-result:
			return err
		case s := <-signals:
			switch {
			case asked.IsZero():
				asked = time.Now()
			case time.Since(asked) < sameSignal:
				continue
			default:
				return fmt.Errorf("second signal (%v): exiting without waiting for work in hand", s)
			}
			logger.Info("Stopping: no new work is begun, what is in hand is finished, then the lease is released", "signal", s.String())
			stop()
		}
	}
}
