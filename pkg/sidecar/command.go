// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// Command is a question that a program answers instead of living: `program NAME [flags] OBJECT`. It takes
// the program's own flags as well, since they decide the answer, and what a manifest says can be pasted.
type Command struct {
	Name string
	// Object is what the command is about, as the help text shows it, and Kinds what it can be about: the first
	// when a name stands alone, the others when they stand before it.
	Object string
	Kinds  []Kind
	// Summary is one sentence for the help text, and Notes what else a user should know.
	Summary, Notes string
	// Add declares the command's own flags; nil means that it has none.
	Add func(*flag.FlagSet)
	// Writes tells that the command changes something: then it tells what it did, in no format.
	Writes bool
	// Check refuses, before anybody is asked, what no answer could make right; nil leaves that to Run. Of the driver the
	// question has the name that a flag says, and Why only where it cannot be asked for another.
	Check func(q Question) error
	// Run answers. Its error means that there is no answer.
	Run func(ctx context.Context, q Question) error
}

// Question is what a Command is asked, and whom it can ask in turn.
type Question struct {
	Namespace, Name string
	// Kind is one of the command's, as the API calls it.
	Kind string
	// Format is text or json.
	Format string
	Client kube.Client
	Clock  clock.WithTicker
	Driver Driver
	// LeaseNamespace is where the sidecar's leases are, if a flag says so.
	LeaseNamespace string
	Options        *Options
	Gates          *Gates
	// Out takes the answer, and Aside what is no part of it.
	Out, Aside io.Writer
}

// Driver is what is known of the driver.
type Driver struct {
	// Identity holds no more than a name, or not even that, unless the driver was asked.
	driver.Identity
	Asked bool
	// Why says why it was not.
	Why string
}

const (
	outText = "text"
	outJSON = "json"
)

// asked finds the command in the arguments; nil means that the program is to live.
func (p *process) asked(args []string) *Command {
	if len(args) < 2 {
		return nil
	}
	for i := range p.Commands {
		if p.Commands[i].Name == args[1] {
			return &p.Commands[i]
		}
	}
	return nil
}

// answer runs a command. Whatever is wrong with the arguments ends with the code of wrong usage, and all
// else with that of failure: nobody restarts a question.
func (p *process) answer(ctx context.Context, command *Command, args []string) error {
	p.name = filepath.Base(args[0]) + " " + command.Name
	hush(textlogger.NewLogger(textlogger.NewConfig()))
	a := p.newAsking(command)
	done, err := p.parseAsking(a, filepath.Base(args[0]), args[2:])
	if err != nil {
		return &ending{err, exitUsage}
	}
	if done {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.Options.Timeout)
	defer cancel()
	q, err := p.question(ctx, a)
	if err == nil {
		err = command.Run(ctx, q)
	}
	if err != nil {
		return &ending{err, exitFailure}
	}
	return nil
}

func (p *process) helpAsking(a *asking) error {
	notes := a.Notes
	if notes == "" {
		notes = "Nothing is written, and of secrets no more is read than whether they are there. The flags of the sidecar itself decide the answer, so say the same here."
	}
	_, err := fmt.Fprintf(p.stdout, "%s\n\nUsage: %s [flags] %s\n\n%s\n", a.Summary, p.name, a.Object, notes)
	if err != nil {
		return err
	}
	if !a.Writes {
		return p.helpGroups(p.stdout)
	}
	// What is written depends on little else than what is said; the rest would hide it.
	p.groups = slices.DeleteFunc(p.groups, func(g group) bool {
		return g.title != titleQuestion && g.title != titleDriver && g.title != titleServer
	})
	if err := p.helpGroups(p.stdout); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "\nThe other flags of the sidecar, which %s --help shows, are taken as well.\n", p.Program.Name)
	return err
}

// question connects to whoever can be asked. It does so as the user who asks: with the file that kubectl
// takes, too.
func (p *process) question(ctx context.Context, a *asking) (Question, error) {
	o := p.Options
	if o.Kubeconfig == "" && o.Master == "" && os.Getenv("KUBECONFIG") == "" {
		if _, err := os.Stat(clientcmd.RecommendedHomeFile); err == nil {
			o.Kubeconfig = clientcmd.RecommendedHomeFile
		}
	}
	config, err := buildConfig(o, p.Program.Name+"/"+p.Version)
	if err != nil {
		return Question{}, err
	}
	client, err := kube.NewClient(config)
	if err != nil {
		return Question{}, err
	}
	if a.namespace == "" {
		a.namespace = contextNamespace(o)
	}
	q := Question{
		Namespace: a.namespace, Name: a.objects[0], Kind: a.kind, Format: a.output, Client: client, Clock: clock.RealClock{},
		LeaseNamespace: o.Election.Namespace, Options: o, Gates: p.gates, Out: p.stdout, Aside: p.stderr,
	}
	q.Driver = askDriver(ctx, o)
	switch {
	case !q.Driver.Asked:
		q.Driver.Name = a.driverName
	case a.driverName != "" && a.driverName != q.Driver.Name:
		return q, fmt.Errorf("--driver-name=%s: the driver at %s is %s; leave one of the two flags out, or say --csi-address=", a.driverName, o.CSIAddress, q.Driver.Name)
	}
	return q, nil
}

// noDriver says why the driver cannot be asked, empty where it is worth trying.
func noDriver(o *Options) string {
	if o.CSIAddress == "" {
		return "--csi-address is empty"
	}
	path, _ := strings.CutPrefix(o.CSIAddress, "unix://")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "there is no socket " + path
	}
	return ""
}

// askDriver asks the driver who it is, if its socket is there. It takes a third of the time that the
// whole answer may take: without the driver there is still something to say.
func askDriver(ctx context.Context, o *Options) Driver {
	if why := noDriver(o); why != "" {
		return Driver{Why: why}
	}
	// A connection is tried until the time is over; that nobody listens is known at once.
	if err := knock(ctx, o.CSIAddress); err != nil {
		return Driver{Why: err.Error()}
	}
	// The shared library logs each step of the way, which is no part of an answer.
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, klog.Logger{}), o.Timeout/3)
	defer cancel()
	conn, err := driver.Connect(ctx, driver.Options{Address: o.CSIAddress, Timeout: o.Timeout / 3})
	if err != nil {
		return Driver{Why: err.Error()}
	}
	defer func() { _ = conn.Close() }()
	identity, err := conn.Identify(ctx)
	if err != nil {
		return Driver{Why: err.Error()}
	}
	return Driver{Identity: identity, Asked: true}
}
