// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// userConfig is a user's: it says in which namespace the user works.
const userConfig = `apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u, namespace: team-a}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
`

// kinds are one that the sample's command is about by itself, one that has to be said, and one of another program.
var kinds = []Kind{{Name: "BigThing", Short: "bt"}, {Name: "Box", Short: "bx"}, {Name: "Stranger", Short: "st", Ask: "other explain st/"}}

// ask runs a sample program with a command that keeps what it was asked.
func ask(t *testing.T, answer error, args ...string) (code int, stderr string, asked *Question) {
	t.Helper()
	program := sample()
	check := func(q Question) error {
		if q.Name == "forbidden" {
			return errors.New("forbidden from the first")
		}
		return nil
	}
	program.Commands = []Command{{Name: "explain", Object: "THING", Kinds: kinds, Summary: "Says why.", Check: check, Run: func(ctx context.Context, q Question) error {
		if _, limited := ctx.Deadline(); !limited {
			t.Error("a question without an end")
		}
		asked = &q
		return answer
	}}}
	var out, errs bytes.Buffer
	code = Main(t.Context(), program, append([]string{"sample"}, args...), &out, &errs)
	return code, errs.String() + out.String(), asked
}

func TestCommandArguments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(userConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"explain", 2, "of which THING? say sample explain [-n NAMESPACE] THING"},
		{"explain a b", 2, `argument "b"`},
		{"explain ns/a", 2, `"ns" is no kind of objects that this is about: say the name alone or bt/NAME or bx/NAME, and the namespace with -n`},
		{"explain bt/", 2, "say the name alone or bt/NAME"},
		{"explain bt/ns/a", 2, "say the name alone or bt/NAME"},
		{"explain bt a", 2, `argument "a": write bt/a, with a slash`},
		{"explain Big_Thing", 2, `argument "Big_Thing": no BigThing can have this name`},
		{"explain bx/..", 2, `argument "..": no Box can have this name`},
		{"explain a -n Team", 2, "-n Team: no namespace can have this name"},
		{"explain a -o", 2, ": -o: needs a value; write -o VALUE: text or json"},
		{"explain a --kube-api-qps=NaN", 2, "--kube-api-qps=NaN: use a number"},
		{"explain a --master=::", 2, "--master=::: use a URL"},
		{"explain a --logging-format=xml", 2, "--logging-format=xml: use text or json"},
		{"explain a --retry-interval-start=0", 2, "--retry-interval-start=0s: use a duration"},
		// What is wrong with an argument is told also where no cluster can be reached.
		{"explain forbidden --kubeconfig=/nowhere", 2, "forbidden from the first"},
		{"explain st/a", 2, "that is a Stranger; use other explain st/a"},
		{"explain st/a -n team", 2, "that is a Stranger; use other explain st/a -n team"},
		{"explain strangers.example.com/a", 2, "that is a Stranger; use other explain st/a"},
		{"explain a -o yaml", 2, "--output=yaml: use text or json"},
		{"explain a --nope", 2, "--nope: there is no such flag"},
		{"explain a -n", 2, ": -n: needs a value"},
		{"explain a --timeout=0", 2, "--timeout=0s"},
		{"explain a --timeout=soon", 2, "--timeout=soon"},
		{"explain a --csi-address=here", 2, "--csi-address=here: use an absolute path"},
		{"explain a --feature-gates=Unheard=true", 2, "there is no such gate"},
		{"explain a --color=", 2, "--color must not be empty"},
		{"explain --help", 0, "Usage: sample explain [flags] THING"},
		{"--help", 0, "sample explain [--flag=value ...] THING"},
		{"explain a --kubeconfig=/nowhere", 1, "/nowhere"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, text, asked := ask(t, nil, strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(text, c.text) {
				t.Errorf("code %d, %q; want %d, %q", code, text, c.code, c.text)
			}
			if asked != nil {
				t.Error("it was asked all the same")
			}
		})
	}
}

// TestHelpOfWhatWrites catches a help in which seventy flags of the sidecar hide the few that matter.
func TestHelpOfWhatWrites(t *testing.T) {
	for _, writes := range []bool{true, false} {
		program := sample()
		program.Commands = []Command{{Name: "import", Object: "THING", Kinds: kinds, Writes: writes}}
		var out bytes.Buffer
		if code := Main(t.Context(), program, []string{"sample", "import", "--help"}, &out, &out); code != 0 {
			t.Fatal(code, out.String())
		}
		text := out.String()
		for _, want := range []string{"--namespace ", "--csi-address ", "--kubeconfig "} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is missing", want)
			}
		}
		for _, hidden := range []string{"--worker-threads ", "--leader-election\n", "--enable-pprof\n", "--walk-to "} {
			if strings.Contains(text, hidden) == writes {
				t.Errorf("writes %v: %s", writes, hidden)
			}
		}
		if strings.Contains(text, "which sample --help shows, are taken as well") != writes {
			t.Errorf("writes %v: %s", writes, text)
		}
	}
}

func TestCommandQuestion(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(userConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	socket := "--csi-address=" + filepath.Join(dir, "none.sock")
	t.Run("the namespace of the context", func(t *testing.T) {
		code, text, q := ask(t, nil, "explain", "data", socket)
		if code != 0 || q == nil || q.Namespace != "team-a" || q.Name != "data" || q.Kind != "BigThing" || q.Format != "text" {
			t.Fatal(code, text, q)
		}
		if q.Driver.Asked || !strings.Contains(q.Driver.Why, "there is no socket") {
			t.Error(q.Driver)
		}
	})
	t.Run("flags on both sides, and the driver's name", func(t *testing.T) {
		code, text, q := ask(t, nil, "explain", "-n", "other", "data", "-o", "json", "--driver-name=d.example", "--color=blue", socket)
		if code != 0 || q == nil || q.Namespace != "other" || q.Format != "json" || q.Driver.Name != "d.example" {
			t.Fatal(code, text, q)
		}
	})
	t.Run("a kind before the name", func(t *testing.T) {
		for word, kind := range map[string]string{"bt": "BigThing", "BigThings": "BigThing", "boxes.v1.example.com": "Box", "bx": "Box"} {
			if code, text, q := ask(t, nil, "explain", word+"/data", socket); code != 0 || q == nil || q.Kind != kind || q.Name != "data" {
				t.Error(word, code, text, q)
			}
		}
	})
	t.Run("no answer", func(t *testing.T) {
		if code, text, _ := ask(t, errors.New("there is no such claim"), "explain", "data", socket); code != 1 || !strings.Contains(text, "sample explain: there is no such claim") {
			t.Error(code, text)
		}
	})
	t.Run("a user's own file", func(t *testing.T) {
		t.Setenv("KUBECONFIG", "")
		before := clientcmd.RecommendedHomeFile
		defer func() { clientcmd.RecommendedHomeFile = before }()
		clientcmd.RecommendedHomeFile = file
		if code, text, q := ask(t, nil, "explain", "data", socket); code != 0 || q == nil || q.Namespace != "team-a" {
			t.Error(code, text)
		}
	})
	t.Run("no server to ask", func(t *testing.T) {
		t.Setenv("KUBECONFIG", "")
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		before := clientcmd.RecommendedHomeFile
		defer func() { clientcmd.RecommendedHomeFile = before }()
		clientcmd.RecommendedHomeFile = filepath.Join(dir, "nothing")
		if code, text, _ := ask(t, nil, "explain", "data", socket); code != 1 || !strings.Contains(text, "no API server") {
			t.Error(code, text)
		}
	})
}

func TestCommandAsksTheDriver(t *testing.T) {
	o := NewOptions()
	o.Timeout = 3 * time.Second
	o.CSIAddress = filepath.Join(t.TempDir(), "csi.sock")
	defer (&plugin{name: "d.example"}).serve(t, o.CSIAddress)()
	// An answer stands on the terminal of a person, who did not ask what the library does.
	var log heard
	if d := askDriver(log.context(t.Context()), o); !d.Asked || d.Name != "d.example" || len(log.lines) > 0 {
		t.Error(d, log.lines)
	}
	o.CSIAddress, o.Timeout = filepath.Join(t.TempDir(), "dead"), time.Hour
	if err := os.WriteFile(o.CSIAddress, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// Whoever asks waits for the answer, and what is no socket gives none however long it is tried.
	if d := askDriver(t.Context(), o); d.Asked || !strings.Contains(d.Why, "is no socket") {
		t.Error(d)
	}
	o.CSIAddress = filepath.Join(t.TempDir(), "deaf")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: o.CSIAddress})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	_ = listener.Close()
	if d := askDriver(t.Context(), o); d.Asked || !strings.Contains(d.Why, "connection refused") {
		t.Error(d)
	}
	o.CSIAddress = ""
	if d := askDriver(t.Context(), o); d.Asked || d.Why != "--csi-address is empty" {
		t.Error(d)
	}
}
