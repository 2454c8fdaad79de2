// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Kind is a kind of objects that a user may mean.
type Kind struct {
	// Name is as the API has it, such as PersistentVolumeClaim, and Short as kubectl abbreviates it.
	Name, Short string
	// Ask is what the command begins with that answers about such objects, up to the name; empty means that
	// this one does.
	Ask string
}

// isCalled tells whether kubectl would take a word for the kind: its short name, or its name in singular or
// plural, in any case, and with the API group or without.
func (k Kind) isCalled(word string) bool {
	word, _, _ = strings.Cut(strings.ToLower(word), ".")
	name := strings.ToLower(k.Name)
	return slices.Contains([]string{k.Short, name, name + "s", name + "es"}, word)
}

// takeKind separates the kind from the name where they are written as kubectl does it, TYPE/NAME.
func (a *asking) takeKind() error {
	word, name, ok := strings.Cut(a.objects[0], "/")
	if !ok {
		if len(a.Kinds) > 0 {
			a.kind = a.Kinds[0].Name
		}
		return a.checkName()
	}
	i := a.kindOf(word)
	switch {
	case name == "" || strings.Contains(name, "/"):
		return fmt.Errorf("argument %q: say %s, and the namespace with -n", a.objects[0], a.forms())
	case i < 0:
		return fmt.Errorf("argument %q: %q is no kind of objects that this is about: say %s, and the namespace with -n", a.objects[0], word, a.forms())
	case a.Kinds[i].Ask != "":
		question := a.Kinds[i].Ask + name
		if a.namespace != "" {
			question += " -n " + a.namespace
		}
		return fmt.Errorf("argument %q: that is a %s; use %s", a.objects[0], a.Kinds[i].Name, question)
	}
	a.kind, a.objects[0] = a.Kinds[i].Name, name
	return a.checkName()
}

// kindOf finds the kind that a word stands for; none is -1.
func (a *asking) kindOf(word string) int {
	return slices.IndexFunc(a.Kinds, func(k Kind) bool { return k.isCalled(word) })
}

func (a *asking) checkName() error {
	if name := a.objects[0]; len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("argument %q: no %s can have this name: use lower-case letters, digits, dashes and dots, 253 of them at most", name, a.kind)
	}
	return nil
}

// forms are the ways to name an object.
func (a *asking) forms() string {
	forms := []string{"the name alone"}
	for _, k := range a.Kinds {
		if k.Ask == "" {
			forms = append(forms, k.Short+"/NAME")
		}
	}
	return strings.Join(forms, " or ")
}
