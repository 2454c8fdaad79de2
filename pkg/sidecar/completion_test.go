// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// completes gives a program with two commands, one of which has a flag of its own.
func completes() Program {
	program := sample()
	program.Commands = []Command{
		{Name: "explain", Object: "THING", Summary: "Says why it's so."},
		{Name: "import", Object: "THING", Summary: "Brings in.", Writes: true, Add: func(fs *flag.FlagSet) {
			fs.String("handle", "", "what the [driver] calls it")
			fs.Bool("dry-run", false, "write nothing")
		}},
	}
	return program
}

func completionOf(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Main(t.Context(), completes(), append([]string{"/bin/sample", "completion"}, args...), &stdout, &stderr)
	return code, stdout.String() + stderr.String()
}

func TestCompletionArguments(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"", 2, "for which shell? say sample completion bash, zsh or fish"},
		{"bash zsh", 2, "for which shell?"},
		{"powershell", 2, "no completion for this shell"},
		{"--help", 0, "source <(sample completion bash)"},
	} {
		if code, text := completionOf(t, strings.Fields(c.args)...); code != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s: exit %d, %s", c.args, code, text)
		}
	}
}

// TestBashCompletes asks a real bash for what it offers.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	_, script := completionOf(t, "bash")
	file := filepath.Join(t.TempDir(), "completion")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line    string
		has     []string
		without []string
	}{
		{"sample ", []string{"explain", "import", "completion"}, []string{"--timeout="}},
		{"sample ex", []string{"explain"}, []string{"import"}},
		{"sample --t", []string{"--timeout="}, []string{"--handle=", "--color="}},
		{"sample --leader-election", []string{"--leader-election", "--leader-election-namespace="}, nil},
		{"sample --walk", nil, []string{"--walk"}}, // retired
		{"sample import --d", []string{"--dry-run", "--driver-name="}, nil},
		{"sample import --ti", []string{"--timeout="}, nil},
		{"sample import -", []string{"-n", "--handle="}, []string{"-o"}},
		{"sample explain --", []string{"--namespace=", "--output="}, []string{"--handle="}},
		{"sample completion ", []string{"bash", "fish", "zsh"}, nil},
	} {
		// Bash splits the line at the cursor; the last word is the one to complete, empty after a space.
		words := strings.Split(c.line, " ")
		ask := `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _sample; printf '%s\n' "${COMPREPLY[@]}"`
		out, err := exec.CommandContext(t.Context(), bash, append([]string{"-c", ask, "bash", file}, words...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %s", c.line, err, out)
		}
		offered := strings.Fields(string(out))
		for _, word := range c.has {
			if !slices.Contains(offered, word) {
				t.Errorf("%q does not offer %s, only %v", c.line, word, offered)
			}
		}
		for _, word := range c.without {
			if slices.Contains(offered, word) {
				t.Errorf("%q offers %s", c.line, word)
			}
		}
	}
}

// TestOtherShellsUnderstand has the shells read the scripts, where they are installed; what is in the scripts is looked at in any case.
func TestOtherShellsUnderstand(t *testing.T) {
	for shell, parts := range map[string][]string{
		"zsh":  {"#compdef sample", "'explain:Says why its so.'", "'--handle=[what the driver calls it]:handle:_files'", "'--dry-run[write nothing]'", "import) _arguments"},
		"fish": {"complete -c sample -n __fish_use_subcommand -a import -d 'Brings in.'", "-n '__fish_seen_subcommand_from import' -l handle -r", "-l timeout -r"},
	} {
		_, script := completionOf(t, shell)
		for _, part := range parts {
			if !strings.Contains(script, part) {
				t.Errorf("%s: without %s:\n%s", shell, part, script)
			}
		}
		if strings.Contains(script, "walk") {
			t.Errorf("%s: a retired flag is offered", shell)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		cmd := exec.CommandContext(t.Context(), path, "-n")
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
}
