// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
)

// asking is a Command and its arguments.
type asking struct {
	*Command
	namespace, output, driverName string
	objects                       []string
	kind                          string
	flags                         *flag.FlagSet
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
	described := group{title: titleQuestion}
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
		if err := p.checkNumbers(a.flags); err != nil {
			return false, err
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
	if err := a.checkObjects(p.name); err != nil {
		return err
	}
	switch {
	case a.namespace != "" && !isNamespace(a.namespace):
		return fmt.Errorf("-n %s: no namespace can have this name: use lower-case letters, digits and dashes, 63 of them at most", a.namespace)
	case a.output != outText && a.output != outJSON:
		return fmt.Errorf("--output=%s: use text or json", a.output)
	case p.Options.Timeout <= 0:
		return fmt.Errorf("--timeout=%v: questions need time, use a duration such as 10s", p.Options.Timeout)
	}
	if err := a.takeKind(); err != nil {
		return err
	}
	if err := p.checkPasted(); err != nil {
		return err
	}
	if a.Check == nil {
		return nil
	}
	said := Driver{Identity: driver.Identity{Name: a.driverName}, Why: noDriver(p.Options)}
	return a.Check(Question{Namespace: a.namespace, Name: a.objects[0], Kind: a.kind, Driver: said, Options: p.Options, Gates: p.gates})
}

// checkObjects makes sure that one object is named. Called is what the command was called as.
func (a *asking) checkObjects(called string) error {
	switch {
	case len(a.objects) == 0:
		return fmt.Errorf("of which %s? say %s [-n NAMESPACE] %s", a.Object, called, a.Object)
	case len(a.objects) == 2 && a.kindOf(a.objects[0]) >= 0:
		return fmt.Errorf("argument %q: write %s/%[1]s, with a slash between the kind and the name", a.objects[1], a.objects[0])
	case len(a.objects) > 1:
		return fmt.Errorf("argument %q: one %s at a time, and the value of a switch needs an equals sign", a.objects[1], a.Object)
	}
	return nil
}

// checkPasted checks the flags of the sidecar. Those of leading and serving are nothing to a question.
func (p *process) checkPasted() error {
	if err := p.checkLogging(); err != nil {
		return err
	}
	if p.Options.CSIAddress != "" {
		if err := driver.CheckAddress(p.Options.CSIAddress); err != nil {
			return err
		}
	}
	if err := checkMaster(p.Options.Master); err != nil {
		return err
	}
	if err := p.Options.checkWork(); err != nil {
		return err
	}
	if p.Validate != nil {
		return p.Validate()
	}
	return nil
}
