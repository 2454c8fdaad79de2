// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/csi-tandem/csi-tandem/pkg/spelling"
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
	if meant := spelling.Nearest(strings.SplitN(name, "=", 2)[0], names); meant != "" {
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
	if meant := spelling.Nearest(word, names); meant != "" {
		hint = fmt.Sprintf("did you mean %s? ", meant)
	}
	return usage("argument %q: %sthere is no such command, only %s; without one the program runs as a sidecar; --help lists commands and flags", word, hint, strings.Join(names, ", "))
}
