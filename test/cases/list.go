// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed list/*.tsv
var lists embed.FS

// listed is one case of the list: its id, what it says in a line, and why it does not apply, if it does not.
type listed struct {
	id, group, says, reason string
}

// group is a set of cases that are numbered together.
type group struct {
	prefix string
	title  string
	// format makes an id of a number.
	format string
}

var groups = []group{
	{"T", "provisioner", "T%02d"},
	{"S", "snapshotter", "S%d"},
	{"B", "field faults", "B%03d"},
	{"PW", "provisioner weaknesses", "PW-%d"},
	{"PP", "provisioner cost", "PP-%d"},
	{"SW", "snapshotter weaknesses", "SW-%d"},
}

// minReason is about what a short sentence takes: "n/a" alone is no reason.
const minReason = 20

func load() ([]listed, error) {
	var all []listed
	for _, g := range groups {
		src, err := lists.ReadFile(path.Join("list", g.prefix+".tsv"))
		if err != nil {
			return nil, fmt.Errorf("reading the list of cases: %w", err)
		}
		cases, err := parseList(g, string(src))
		if err != nil {
			return nil, fmt.Errorf("reading the list of cases %s.tsv: %w", g.prefix, err)
		}
		all = append(all, cases...)
	}
	return all, nil
}

// parseList reads lines of id, words, and for a case that does not apply "n/a: " with the reason, with tabs between.
func parseList(g group, src string) ([]listed, error) {
	var all []listed
	for i, line := range strings.Split(strings.TrimSuffix(src, "\n"), "\n") {
		c, err := parseCase(g, line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if slices.ContainsFunc(all, func(other listed) bool { return other.id == c.id }) {
			return nil, fmt.Errorf("line %d: %s is there twice", i+1, c.id)
		}
		all = append(all, c)
	}
	return all, nil
}

func parseCase(g group, line string) (listed, error) {
	fields := strings.Split(line, "\t")
	if len(fields) < 2 || len(fields) > 3 || strings.TrimSpace(fields[1]) == "" {
		return listed{}, fmt.Errorf("%q is not id, words and perhaps a reason, with tabs between", line)
	}
	c := listed{id: fields[0], group: g.prefix, says: fields[1]}
	r, rest, ok := nextRef(c.id)
	if !ok || rest != "" || r.prefix != g.prefix || r.id(g.prefix) != c.id {
		return listed{}, fmt.Errorf("%q is not an id of the group %s", c.id, g.prefix)
	}
	if len(fields) == 3 {
		reason, ok := strings.CutPrefix(fields[2], "n/a: ")
		if !ok || len(reason) < minReason {
			return listed{}, fmt.Errorf("%s does not apply, and no sentence says why", c.id)
		}
		c.reason = reason
	}
	return c, nil
}

// choose takes ids in any spelling, groups, and prefixes; what fits nothing is an error, so that a slip does not look like success.
func choose(all []listed, wanted string) ([]listed, error) {
	if strings.TrimSpace(wanted) == "" {
		return all, nil
	}
	chosen := map[string]bool{}
	for _, want := range strings.Split(wanted, ",") {
		want = strings.TrimSpace(want)
		fits := fitting(all, want)
		if len(fits) == 0 {
			return nil, fmt.Errorf("no case is called %q, and none begins so", want)
		}
		for _, c := range fits {
			chosen[c.id] = true
		}
	}
	return filter(all, func(c listed) bool { return chosen[c.id] }), nil
}

func fitting(all []listed, want string) []listed {
	if r, rest, ok := nextRef(want); ok && rest == "" {
		if exact := filter(all, func(c listed) bool { return c.id == r.id(r.prefix) }); len(exact) > 0 {
			return exact
		}
	}
	if isGroup := filter(all, func(c listed) bool { return c.group == want }); len(isGroup) > 0 {
		return isGroup
	}
	return filter(all, func(c listed) bool { return want != "" && strings.HasPrefix(c.id, want) })
}

func filter(all []listed, keep func(listed) bool) []listed {
	var kept []listed
	for _, c := range all {
		if keep(c) {
			kept = append(kept, c)
		}
	}
	return kept
}

func groupsNamed(names string) ([]group, error) {
	var named []group
	if strings.TrimSpace(names) == "" {
		return nil, nil
	}
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(groups, func(g group) bool { return g.prefix == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("no group of cases is called %q", name)
		}
		named = append(named, groups[i])
	}
	return named, nil
}
