// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell is a process that runs a script.
func shell(t *testing.T, script string) *Process {
	t.Helper()
	path, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh to play a program: ", err)
	}
	p := &Process{Name: "script", Path: path, Args: []string{"-c", script}, Log: filepath.Join(t.TempDir(), "log")}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func isThere(id int) bool { return !errors.Is(syscall.Kill(id, 0), syscall.ESRCH) }

func TestKillEndsTheWholeGroup(t *testing.T) {
	p := shell(t, "sleep 1000 & echo $!; wait")
	until(t, "the child is there", func() bool { return p.LogTail(1) != "" })
	first := p.ID()
	p.Kill()
	if p.IsRunning() || isThere(first) {
		t.Error("it is still there")
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if !p.IsRunning() || p.ID() == first {
		t.Error("it was not started again")
	}
	if deaths := p.Deaths(); len(deaths) > 0 {
		t.Errorf("a kill that was wanted counts as %q", deaths)
	}
}

func TestBeginTerminationDoesNotWait(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	p := shell(t, "trap 'while ! test -e "+gate+"; do sleep 0.02; done; exit 7' TERM; echo up; while :; do sleep 0.05; done")
	until(t, "it is up", func() bool { return p.LogTail(1) == "up" })
	wait := p.BeginTermination()
	if !p.IsRunning() {
		t.Error("it was waited for")
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if state := wait(); state.ExitCode() != 7 {
		t.Errorf("ended with %v", state)
	}
	if deaths := p.Deaths(); len(deaths) > 0 {
		t.Errorf("an end that was asked for counts as %q", deaths)
	}
}

func TestTerminateLetsAProgramEnd(t *testing.T) {
	p := shell(t, "trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done")
	until(t, "it is up", func() bool { return p.LogTail(1) == "up" })
	if state := p.Terminate(); state.ExitCode() != 7 {
		t.Errorf("ended with %v", state)
	}
	if again := p.Terminate(); again.ExitCode() != 7 {
		t.Errorf("a second end says %v", again)
	}
}

func TestDeathsTellsWhatNobodyAskedFor(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"an end by itself", "exit 3", "exit status 3"},
		{"a panic that was survived", "printf 'x\\npanic: no\\n'; sleep 1000", "panic:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := shell(t, tt.script)
			until(t, "it is told", func() bool { return strings.Contains(strings.Join(p.Deaths(), " "), tt.want) })
		})
	}
}

func TestChaosLeavesEverybodyRunning(t *testing.T) {
	p := shell(t, "sleep 1000")
	before := p.ID()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	chaos := StartChaos(ctx, 1, p)
	until(t, "it was killed", func() bool { return p.IsRunning() && p.ID() != before })
	kills, err := chaos.Stop()
	if err != nil || kills["script"] == 0 || !p.IsRunning() {
		t.Errorf("kills %v, error %v, running %t", kills, err, p.IsRunning())
	}
}

func TestPlainEnvironment(t *testing.T) {
	got := plainEnvironment([]string{"PATH=/bin", "KUBECONFIG=/x", "HTTPS_PROXY=y", "no_proxy=z", "POD_NAMESPACE=a", "OTEL_EXPORTER_OTLP_ENDPOINT=b", "HOME=/h"})
	if want := []string{"PATH=/bin", "HOME=/h"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFindRootFromBelow(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "test", "stage", "build.go")); err != nil {
		t.Error(err)
	}
	t.Chdir(t.TempDir())
	if _, err := findRoot(); err == nil {
		t.Error("a folder outside was taken for a checkout")
	}
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come that ", what)
		}
	}
}

// TestADriverThatEndsIsNotWaitedFor: catches one whose flags are wrong, of which people hear after half a minute that it does not answer.
func TestADriverThatEndsIsNotWaitedFor(t *testing.T) {
	connection, err := dial(filepath.Join(t.TempDir(), "none.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.connection.Close()
	c := &Cast{Driver: shell(t, "exit 3"), endpoint: connection}
	if err := c.meet(t.Context()); err == nil || !strings.Contains(err.Error(), "script has ended: exit status 3") {
		t.Errorf("heard %v", err)
	}
}
