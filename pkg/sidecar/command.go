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
	"strings"

	"k8s.io/client-go/tools/clientcmd"
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
	Out            io.Writer
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

// asking is a Command and its arguments.
type asking struct {
	*Command
	namespace, output, driverName string
	objects                       []string
	kind                          string
	flags                         *flag.FlagSet
}

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

func (p *process) newAsking(command *Command) *asking {
	a := &asking{Command: command, output: outText, flags: flag.NewFlagSet(command.Name, flag.ContinueOnError)}
	a.flags.SetOutput(io.Discard)
	own := flag.NewFlagSet(command.Name, flag.ContinueOnError)
	for _, name := range []string{"n", "namespace"} {
		own.StringVar(&a.namespace, name, "", "`namespace` of the object; empty means the one of the kubeconfig's context")
	}
	if !command.Writes {
		for _, name := range []string{"o", "output"} {
			own.StringVar(&a.output, name, outText, "text or json")
		}
	}
	if command.Add != nil {
		command.Add(own)
	}
	own.StringVar(&a.driverName, "driver-name", "", "`name` of the driver, for where its socket is not; empty takes it from the objects")
	described := group{title: "Question"}
	own.VisitAll(func(f *flag.Flag) {
		a.flags.Var(f.Value, f.Name, f.Usage)
		described.flags = append(described.flags, f)
	})
	p.flags.VisitAll(func(f *flag.Flag) { a.flags.Var(f.Value, f.Name, f.Usage) })
	p.groups = append([]group{described}, p.groups...)
	return a
}

// parseAsking reads the arguments, in whose midst the object may stand. Done means that help was all that
// was asked for.
func (p *process) parseAsking(a *asking, called string, args []string) (done bool, err error) {
	for name, value := range p.Presets[called] {
		if err := a.flags.Set(name, value); err != nil {
			return false, fmt.Errorf("preset --%s=%s: %w", name, value, err)
		}
	}
	for {
		if err := a.flags.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return true, p.helpAsking(a)
			}
			return false, p.explain(err)
		}
		rest := a.flags.Args()
		if len(rest) == 0 {
			break
		}
		a.objects = append(a.objects, rest[0])
		args = rest[1:]
	}
	return false, p.checkAsking(a)
}

func (p *process) checkAsking(a *asking) error {
	if _, err := p.gates.apply(); err != nil {
		return err
	}
	switch {
	case len(a.objects) == 0:
		return fmt.Errorf("of which %s? say %s [-n NAMESPACE] %s", a.Object, p.name, a.Object)
	case len(a.objects) > 1:
		return fmt.Errorf("argument %q: one %s at a time, and the value of a switch needs an equals sign", a.objects[1], a.Object)
	case a.output != outText && a.output != outJSON:
		return fmt.Errorf("--output=%s: use text or json", a.output)
	case p.Options.Timeout <= 0:
		return fmt.Errorf("--timeout=%v: questions need time, use a duration such as 10s", p.Options.Timeout)
	}
	if err := a.takeKind(); err != nil {
		return err
	}
	if p.Options.CSIAddress != "" {
		if err := driver.CheckAddress(p.Options.CSIAddress); err != nil {
			return err
		}
	}
	if p.Validate != nil {
		return p.Validate()
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
	return p.helpGroups(p.stdout)
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
		LeaseNamespace: o.Election.Namespace, Options: o, Gates: p.gates, Out: p.stdout,
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

// askDriver asks the driver who it is, if its socket is there. It takes a third of the time that the
// whole answer may take: without the driver there is still something to say.
func askDriver(ctx context.Context, o *Options) Driver {
	if o.CSIAddress == "" {
		return Driver{Why: "--csi-address is empty"}
	}
	path, _ := strings.CutPrefix(o.CSIAddress, "unix://")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return Driver{Why: "there is no socket " + path}
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout/3)
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
