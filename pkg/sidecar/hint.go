// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"flag"
	"fmt"
	"regexp"
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
	how := fmt.Sprintf("%s, %s/%s", info.GoVersion, runtime.GOOS, runtime.GOARCH)
	commit := settings["vcs.revision"]
	commit = commit[:min(shortCommit, len(commit))]
	switch {
	case commit == "":
		return how // the version before it may well be one, so that it is not called unknown
	case settings["vcs.modified"] == "true":
		commit += " with changes"
	}
	return "commit " + commit + ", " + how
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

var (
	undefined = regexp.MustCompile(`^flag provided but not defined: -+(.*)$`)
	needsArg  = regexp.MustCompile(`^flag needs an argument: -+(.*)$`)
	badValue  = regexp.MustCompile(`^invalid (?:boolean )?value "(.*)" for (?:flag )?-+([^:]*): (.*)$`)
)

// explain says what the flag package found in one line that also says what to write. Its errors have no
// types, so the texts are all there is; one that is not known goes out as it is.
func (p *process) explain(err error) error {
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	if m := undefined.FindStringSubmatch(text); m != nil {
		return usage("%s: there is no such flag; %s--help lists them all", dashed(m[1]), p.meantFlag(m[1]))
	}
	if m := needsArg.FindStringSubmatch(text); m != nil {
		return usage("%s: needs a value; %s", dashed(m[1]), p.wants(m[1]))
	}
	if m := badValue.FindStringSubmatch(text); m != nil {
		switch {
		case slices.Contains(p.unreachable, m[2]):
			return &ending{unreachableError(m[2], m[1]), exitUsage}
		case m[2] == vmoduleName:
			return usage("%s=%s: use pattern=N,pattern=N with whole numbers from 0 up, such as claim*=4", dashed(m[2]), m[1])
		}
		// Some values pass on what the standard library says.
		if m[3] == "parse error" || m[3] == "value out of range" || strings.HasPrefix(m[3], "strconv.") {
			return usage("%s=%s: %s", dashed(m[2]), m[1], p.wants(m[2]))
		}
		return usage("%s=%s: %s", dashed(m[2]), m[1], m[3])
	}
	return usage("%s; --help lists all flags", text)
}

// dashed is a flag as users write it: those of one letter have one dash, but for --v, which is in each manifest.
func dashed(name string) string {
	if len(name) == 1 && name != "v" {
		return "-" + name
	}
	return "--" + name
}

// declared finds a flag, be it of the program or of the command that it was called with.
func (p *process) declared(name string) *flag.Flag {
	for _, g := range p.groups {
		for _, f := range g.flags {
			if f.Name == name {
				return f
			}
		}
	}
	return nil
}

// wants says what the values of a flag look like.
func (p *process) wants(name string) string {
	f := p.declared(name)
	if f == nil {
		return "see --help"
	}
	if _, isRetired := f.Value.(*retired); isRetired || slices.Contains(p.unreachable, name) {
		return "leave the flag out: " + f.Usage
	}
	kind := typeOf(f)
	example := map[string]string{
		"int": "use a whole number", "uint": "use a whole number from 0 up", "float": "use a number",
		"duration": "use a duration such as 90s or 5m", "bool": "use true or false",
	}[kind]
	if example == "" {
		return p.shape(f)
	}
	if f.DefValue != "" {
		example += "; the default is " + f.DefValue
	}
	return example
}

// shape is how a flag with a text is written.
func (p *process) shape(f *flag.Flag) string {
	value, usage := flag.UnquoteUsage(f)
	if value == "string" || value == "value" || value == "" {
		value = "VALUE"
	}
	equals := "="
	if len(f.Name) == 1 {
		equals = " "
	}
	return fmt.Sprintf("write %s%s%s: %s", dashed(f.Name), equals, value, usage)
}
