// SPDX-License-Identifier: Apache-2.0

// Package arch holds the rules of the house as code that fails.
//
// It owns the rules that can be checked by reading the tree: who may import whom, what pure packages keep out of, sizes and
// shapes, names, which calls have a place of their own, that manifests and examples decode, and that the rights granted are
// the rights needed. CONTRIBUTING.md says in words what stands here as tables.
// It must not know what any package does, and it imports none of them: a tree that does not compile can still be judged.
// It stands outside every walk. Each rule is a function over a parsed tree, so that a test can hand it a small wrong tree
// and see it complain.
package arch

import (
	"cmp"
	"fmt"
	"slices"
)

// Finding is one place where a rule does not hold.
type Finding struct {
	Rule  string
	Where string
	What  string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s", f.Rule, f.Where, f.What)
}

// Rule is one check over the whole tree.
type Rule struct {
	Name  string
	Check func(*Tree) []Finding
}

// Rules are all rules about Go code and texts. Manifests and rights have their own, see Manifests, Story and grantedTo.
func Rules() []Rule {
	return []Rule{
		{"arrows", checkArrows},
		{"owners", checkOwners},
		{"purity", checkPurity},
		{"exit", checkExit},
		{"background", checkBackground},
		{"clock", checkClock},
		{"update", checkUpdate},
		{"flags", checkFlagGlobals},
		{"size", checkSizes},
		{"complexity", checkComplexity},
		{"package-name", checkPackageNames},
		{"package-comment", checkPackageComments},
		{"get", checkGetNames},
		{"alias", checkAliases},
		{"signature", checkSignatures},
		{"receiver", checkReceivers},
		{"header", checkHeaders},
		{"text", checkTexts},
		{"metric", checkMetrics},
		{"paper", checkPapers},
	}
}

// sorted gives findings an order that does not depend on the order of maps.
func sorted(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Where, b.Where), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.What, b.What))
	})
	return findings
}
