// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// builtFrom says which commit and which Go a program was built from, as far as the linker knew.
func builtFrom() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return runtime.Version()
	}
	return describeBuild(info)
}

// shortCommit is how many digits name a commit.
const shortCommit = 12

func describeBuild(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit := settings["vcs.revision"]
	commit = commit[:min(shortCommit, len(commit))]
	switch {
	case commit == "":
		commit = "unknown"
	case settings["vcs.modified"] == "true":
		commit += " with changes"
	}
	return fmt.Sprintf("commit %s, %s, %s/%s", commit, info.GoVersion, runtime.GOOS, runtime.GOARCH)
}

// meantFlag is a hint to the flag that was probably meant, or nothing.
func (p *process) meantFlag(name string) string {
	var names []string
	for _, g := range p.groups {
		for _, f := range g.flags {
			names = append(names, f.Name)
		}
	}
	if meant := nearest(strings.SplitN(name, "=", 2)[0], names); meant != "" {
		return fmt.Sprintf("did you mean --%s? ", meant)
	}
	return ""
}

// commandNames are what the first argument may be instead of a flag.
func (p *process) commandNames() []string {
	var names []string
	for _, c := range p.Commands {
		names = append(names, c.Name)
	}
	return append(names, completionName)
}

// unknownArgument is about an argument that is neither a flag nor a command. Where it stands first a command
// was meant, and after flags most often the value of a switch, or a command that came too late.
func (p *process) unknownArgument(args []string, word string) error {
	names := p.commandNames()
	switch {
	case slices.Contains(names, word):
		return usage("argument %q: a command stands first, before all flags: %s %[1]s ...", word, p.name)
	case args[0] != word:
		return usage("argument %q: only flags are taken here, and the value of a switch needs an equals sign, as in --leader-election=true; --help lists them and the commands", word)
	}
	hint := ""
	if meant := nearest(word, names); meant != "" {
		hint = fmt.Sprintf("did you mean %s? ", meant)
	}
	return usage("argument %q: %sthere is no such command, only %s; without one the program runs as a sidecar; --help lists commands and flags", word, hint, strings.Join(names, ", "))
}

// mostChanges is how many letters may differ, and one in so many of the word at most.
const mostChanges, oneIn = 3, 3

// nearest is the candidate that takes the fewest changes of letters, empty when all take too many: a hint that
// is wrong is worse than none.
func nearest(word string, candidates []string) string {
	word = plain(word)
	best, fewest := "", min(mostChanges, len(word)/oneIn)+1
	for _, candidate := range candidates {
		if d := distance(word, plain(candidate)); d < fewest {
			best, fewest = candidate, d
		}
	}
	return best
}

// plain drops what people mix up without noticing.
func plain(word string) string { return strings.ToLower(strings.ReplaceAll(word, "_", "-")) }

// distance counts the letters to insert, drop, replace or swap with their neighbour, to get from one word to another.
func distance(from, to string) int {
	a, b := []rune(from), []rune(to)
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
