// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// completionName is the command that prints what a shell needs to complete the program's arguments.
const completionName = "completion"

var shells = map[string]func(*words) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}

// words are what there is to complete.
type words struct {
	program  string
	commands []commandWords
	// own are the flags of the program itself.
	own []*flag.Flag
}

// commandWords are one command, and the flags that it has besides those of the program.
type commandWords struct {
	name, summary string
	flags         []*flag.Flag
	arguments     []string
}

// completion answers `PROGRAM completion SHELL`.
func (p *process) completion(args []string) error {
	switch {
	case len(args) == 1 && (args[0] == "--help" || args[0] == "-help" || args[0] == "-h"):
		_, err := fmt.Fprintf(p.stdout, "Usage: %s %s bash|zsh|fish\n\n%s", p.name, completionName, p.completionHelp())
		return err
	case len(args) != 1:
		return usage("for which shell? say %s %s bash, zsh or fish", p.name, completionName)
	}
	script := shells[args[0]]
	if script == nil {
		return usage("%s %s: there is no completion for this shell, only for bash, zsh and fish", completionName, args[0])
	}
	_, err := fmt.Fprint(p.stdout, script(p.words()))
	return err
}

func (p *process) completionHelp() string {
	return strings.NewReplacer("PROGRAM", p.name).Replace(`Prints a script that makes the shell complete commands and flags:

  bash   source <(PROGRAM completion bash)
  zsh    PROGRAM completion zsh > "${fpath[1]}/_PROGRAM"
  fish   PROGRAM completion fish > ~/.config/fish/completions/PROGRAM.fish
`)
}

// words leaves out flags that do nothing: nobody types what is only there for old manifests.
func (p *process) words() *words {
	w := &words{program: p.name}
	for _, g := range p.groups {
		if g.title == titleRetired || strings.HasPrefix(g.title, titleMissing) {
			continue
		}
		w.own = append(w.own, g.flags...)
	}
	for i := range p.Commands {
		c := &p.Commands[i]
		described := newProcess(p.Program, p.stdout, p.stderr)
		described.newAsking(c)
		w.commands = append(w.commands, commandWords{name: c.Name, summary: c.Summary, flags: described.groups[0].flags})
	}
	w.commands = append(w.commands, commandWords{
		name: completionName, summary: "Prints completion for a shell.", arguments: []string{"bash", "fish", "zsh"},
	})
	slices.SortFunc(w.own, func(a, b *flag.Flag) int { return strings.Compare(a.Name, b.Name) })
	return w
}

// isSwitch tells that a flag needs no value.
func isSwitch(f *flag.Flag) bool { return typeOf(f) == "bool" }

// dashes are as kubectl users write them.
func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// flagWords are flags with an equals sign where a value follows, since a switch takes none without.
func flagWords(flags []*flag.Flag) string {
	var all []string
	for _, f := range flags {
		word := dashes(f.Name)
		if !isSwitch(f) && len(f.Name) > 1 {
			word += "="
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

// bashCompletion is for any bash since version 4, without the package of completions that not all systems have.
func bashCompletion(w *words) string {
	var cases strings.Builder
	var names []string
	for _, c := range w.commands {
		names = append(names, c.name)
		if len(c.arguments) > 0 {
			fmt.Fprintf(&cases, "    %s) flags=''; words='%s' ;;\n", c.name, strings.Join(c.arguments, " "))
			continue
		}
		fmt.Fprintf(&cases, "    %s) flags=\"$flags %s\" ;;\n", c.name, flagWords(c.flags))
	}
	return strings.NewReplacer("PROGRAM", w.program, "FUNCTION", functionOf(w.program), "FLAGS", flagWords(w.own),
		"COMMANDS", strings.Join(names, " "), "CASES\n", cases.String()).Replace(`# bash completion of PROGRAM: source <(PROGRAM completion bash)
FUNCTION() {
  local current=${COMP_WORDS[COMP_CWORD]} flags='FLAGS' words=''
  # Bash takes an equals sign for a word of its own; what comes after it is a value, for which files are offered.
  if [[ $current == = || ${COMP_WORDS[COMP_CWORD-1]} == = ]]; then
    COMPREPLY=($(compgen -f -- "${current#=}"))
    return
  fi
  [[ $COMP_CWORD -eq 1 ]] && words='COMMANDS'
  case ${COMP_WORDS[1]} in
CASES
  esac
  if [[ $current == -* ]]; then
    words=$flags
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
  return 0
}
complete -F FUNCTION PROGRAM
`)
}

func functionOf(program string) string { return "_" + strings.ReplaceAll(program, "-", "_") }

// zshCompletion describes each flag by the beginning of its help text.
func zshCompletion(w *words) string {
	var text strings.Builder
	fmt.Fprintf(&text, "#compdef %s\n# zsh completion of %s: write it to _%s in a folder of $fpath\n", w.program, w.program, w.program)
	fmt.Fprintf(&text, "%s() {\n  local -a own=(\n%s  )\n", functionOf(w.program), zshFlags(w.own))
	text.WriteString("  local -a commands=(\n")
	for _, c := range w.commands {
		fmt.Fprintf(&text, "    '%s:%s'\n", c.name, quoted(c.summary))
	}
	text.WriteString("  )\n  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n    _describe command commands\n    return\n  fi\n  case $words[2] in\n")
	for _, c := range w.commands {
		if len(c.arguments) > 0 {
			fmt.Fprintf(&text, "    %s) _arguments '*:shell:(%s)' ;;\n", c.name, strings.Join(c.arguments, " "))
			continue
		}
		fmt.Fprintf(&text, "    %s) _arguments '1:command:' '*:object:' $own \\\n%s      ;;\n", c.name, strings.ReplaceAll(zshFlags(c.flags), "\n", " \\\n"))
	}
	fmt.Fprintf(&text, "    *) _arguments $own ;;\n  esac\n}\n%s \"$@\"\n", functionOf(w.program))
	return text.String()
}

func zshFlags(flags []*flag.Flag) string {
	var text strings.Builder
	for _, f := range flags {
		value := "=:" + f.Name + ":_files"
		switch {
		case isSwitch(f):
			value = ""
		case len(f.Name) == 1:
			value = ":" + f.Name + ":"
		}
		open, end, equals := "[", "]", ""
		if strings.HasPrefix(value, "=") {
			equals, value = "=", value[1:]
		}
		fmt.Fprintf(&text, "    '%s%s%s%s%s%s'\n", dashes(f.Name), equals, open, bracketed(firstWords(f)), end, value)
	}
	return text.String()
}

// fishCompletion has the descriptions too.
func fishCompletion(w *words) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# fish completion of %s: write it to ~/.config/fish/completions/%s.fish\n", w.program, w.program)
	fmt.Fprintf(&text, "complete -c %s -f\n", w.program)
	for _, c := range w.commands {
		fmt.Fprintf(&text, "complete -c %s -n __fish_use_subcommand -a %s -d '%s'\n", w.program, c.name, quoted(c.summary))
		for _, f := range c.flags {
			fishFlag(&text, w.program, "-n '__fish_seen_subcommand_from "+c.name+"' ", f)
		}
		for _, argument := range c.arguments {
			fmt.Fprintf(&text, "complete -c %s -n '__fish_seen_subcommand_from %s' -a %s\n", w.program, c.name, argument)
		}
	}
	for _, f := range w.own {
		fishFlag(&text, w.program, "", f)
	}
	return text.String()
}

func fishFlag(text *strings.Builder, program, when string, f *flag.Flag) {
	kind := "-l"
	if len(f.Name) == 1 {
		kind = "-s"
	}
	value := " -r"
	if isSwitch(f) {
		value = ""
	}
	fmt.Fprintf(text, "complete -c %s %s%s %s%s -d '%s'\n", program, when, kind, f.Name, value, quoted(firstWords(f)))
}

// firstWords is the beginning of what a flag means, short enough for a line of a list.
func firstWords(f *flag.Flag) string {
	_, text := flag.UnquoteUsage(f)
	for _, end := range []string{";", ":", ", "} {
		if before, _, found := strings.Cut(text, end); found && len(before) > 15 {
			text = before
		}
	}
	if runes := []rune(text); len(runes) > 70 {
		text = string(runes[:69]) + "…"
	}
	return text
}

// quoted goes between single quotes.
func quoted(text string) string {
	return strings.NewReplacer("'", "", "\\", "", "\n", " ").Replace(text)
}

var brackets = regexp.MustCompile(`[\[\]:]`)

// bracketed goes into the brackets of a zsh specification.
func bracketed(text string) string { return brackets.ReplaceAllString(quoted(text), "") }
