// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Stages of feature gates.
const (
	Alpha = "ALPHA"
	Beta  = "BETA"
	GA    = "GA"
)

// Gate is one feature gate.
type Gate struct {
	Name    string
	Stage   string
	Default bool
	// Missing is the name of a feature that this build does not have; it can be switched off, not on.
	Missing string
	// Retired gates are accepted and do nothing, and so is Fixed, whose value cannot be changed any more.
	Retired bool
	Fixed   string
}

// Gates are the feature gates with the values that they were given.
type Gates struct {
	known []Gate
	texts []string
	given map[string]bool
}

func newGates(known []Gate) *Gates { return &Gates{known: known} }

// Enabled tells whether a gate is on.
func (g *Gates) Enabled(name string) bool {
	i := slices.IndexFunc(g.known, func(k Gate) bool { return k.Name == name })
	if i < 0 || g.known[i].Missing != "" {
		return false
	}
	gate := g.known[i]
	if value, ok := g.given[name]; ok && gate.Fixed == "" {
		return value
	}
	return gate.Default || gate.Stage == Alpha && g.given["AllAlpha"] || gate.Stage == Beta && g.given["AllBeta"]
}

// IsGiven tells whether somebody has set a gate, to whatever value.
func (g *Gates) IsGiven(name string) bool {
	_, ok := g.given[name]
	return ok
}

// String implements flag.Value.
func (g *Gates) String() string {
	if g == nil {
		return ""
	}
	return strings.Join(g.texts, ",")
}

// Set implements flag.Value. Repeats add up. Nothing is refused here: a wrong gate has an exit code of
// its own, which flag parsing could not tell from its own errors.
func (g *Gates) Set(text string) error {
	g.texts = append(g.texts, text)
	return nil
}

// apply reads what Set collected and returns warnings.
func (g *Gates) apply() (warnings []string, err error) {
	g.given = map[string]bool{}
	for item := range strings.SplitSeq(g.String(), ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		warning, err := g.give(item)
		if err != nil {
			return nil, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return warnings, nil
}

func (g *Gates) give(item string) (warning string, err error) {
	name, text, found := strings.Cut(item, "=")
	value, parseErr := strconv.ParseBool(strings.TrimSpace(text))
	name = strings.TrimSpace(name)
	if !found || parseErr != nil || name == "" {
		name = cmp.Or(name, "Name")
		return "", fatal("--feature-gates=%s: write %s=true or %s=false", item, name, name)
	}
	if name == "AllAlpha" || name == "AllBeta" {
		g.given[name] = value
		return "", nil
	}
	i := slices.IndexFunc(g.known, func(k Gate) bool { return k.Name == name })
	if i < 0 {
		return "", fatal("--feature-gates=%s: there is no such gate here, use one of %s", item, strings.Join(g.names(), ", "))
	}
	switch gate := g.known[i]; {
	case gate.Retired:
		return fmt.Sprintf("--feature-gates=%s: this gate was retired long ago and does nothing; remove it", item), nil
	case gate.Fixed != "" && value != gate.Default:
		return fmt.Sprintf("--feature-gates=%s: has no effect, %s", item, gate.Fixed), nil
	case gate.Missing != "" && value:
		return "", fatal("--feature-gates=%s: this build does not have %s yet; remove the gate or set it to false", item, gate.Missing)
	}
	g.given[name] = value
	return "", nil
}

// names lists the gates that can be set, for messages and the help text.
func (g *Gates) names() []string {
	names := []string{"AllAlpha", "AllBeta"}
	for _, gate := range g.known {
		if !gate.Retired {
			names = append(names, gate.Name)
		}
	}
	slices.Sort(names)
	return names
}

// usage is the help text of the flag.
func (g *Gates) usage() string {
	var items []string
	for _, gate := range g.known {
		if !gate.Retired {
			items = append(items, fmt.Sprintf("%s (%s, %t)", gate.Name, gate.Stage, gate.Default && gate.Missing == ""))
		}
	}
	return "`gates` to switch, written Name=true,Other=false: " + strings.Join(items, ", ") + ", and AllAlpha and AllBeta for all of a stage"
}
