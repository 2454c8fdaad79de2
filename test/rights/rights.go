// SPDX-License-Identifier: Apache-2.0

// Package rights is the one table of what the programs do with the API, by the feature that makes them do it, and the manifests
// that are written from it: those of deploy/ and of the example of a vendor.
//
// It owns which feature takes which verbs, and which features a manifest grants. A test writes the manifests with -update, and
// fails when one of them says something else.
// It must not know how the programs do their work; that they need exactly this is seen in the end-to-end tests.
// It stands outside the walks. Whoever adds an effect adds its verb here.
package rights

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Program is a program that asks.
type Program string

// The programs. The snapshotter is also the snapshot-controller, by other features.
const (
	Provisioner Program = "provisioner"
	Snapshotter Program = "snapshotter"
)

// Feature is something that can be left out, with its rights.
type Feature string

// Scope says where a right holds.
type Scope string

const (
	// Everywhere is in all namespaces, and on what has none.
	Everywhere Scope = "*"
	// Home is the namespace that the program runs in.
	Home Scope = "home"
)

// Row is what a feature of a program does with a resource, and why.
type Row struct {
	Program  Program
	Feature  Feature
	Scope    Scope
	Group    string
	Resource string
	// Name limits the right to objects of that name; empty does not.
	Name string
	// Verbs are separated by blanks.
	Verbs string
	Why   string
}

// Right is one verb.
type Right struct {
	Scope                       Scope
	Group, Resource, Name, Verb string
}

func (r Right) String() string {
	resource := cmp.Or(r.Group, "core") + " " + r.Resource
	if r.Name != "" {
		resource += "=" + r.Name
	}
	return fmt.Sprintf("%s %s %s", r.Scope, resource, r.Verb)
}

// Set is some features of one program.
type Set struct {
	Program  Program
	Features []Feature
}

// Of makes a set.
func Of(program Program, features ...Feature) Set { return Set{program, features} }

// Rows are the rows of all sets, in the order of the table. A feature that no row has is a slip of who names it.
func Rows(sets ...Set) ([]Row, error) {
	var rows []Row
	for _, s := range sets {
		for _, f := range s.Features {
			found := slices.ContainsFunc(table, func(r Row) bool { return r.Program == s.Program && r.Feature == f })
			if !found {
				return nil, fmt.Errorf("the %s has no feature %q", s.Program, f)
			}
		}
	}
	for _, r := range table {
		if slices.ContainsFunc(sets, func(s Set) bool { return s.Program == r.Program && slices.Contains(s.Features, r.Feature) }) {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// Expand lists the single rights of rows, each once.
func Expand(rows []Row) []Right {
	var all []Right
	for _, row := range rows {
		for verb := range strings.FieldsSeq(row.Verbs) {
			r := Right{row.Scope, row.Group, row.Resource, row.Name, verb}
			if !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	return all
}

// Complete is every feature of a program that its deployment may have. What only serves the command explain is left out: a user has
// rights of his own for that.
func Complete(program Program) Set {
	s := Set{Program: program}
	for _, r := range table {
		if r.Program == program && r.Feature != Explain && !slices.Contains(s.Features, r.Feature) {
			s.Features = append(s.Features, r.Feature)
		}
	}
	return s
}
