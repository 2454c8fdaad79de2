// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/csi-tandem/csi-tandem/test/node/unified"
)

// insideVariable tells the test's own binary that it is in a view of this machine that has cgroups of version 2 only.
const insideVariable = "CSI_TANDEM_UNIFIED"

// TestDelegate runs on groups of version 2 of the kernel, also where the machine uses version 1: what the first process of a machine
// does lets groups below it have controllers. Catches one that stays in the group, which the kernel refuses, and one that leaves it
// with nothing passed on.
func TestDelegate(t *testing.T) {
	if os.Getenv(insideVariable) != "" {
		delegate(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root makes groups")
	}
	cmd := unified.Command(t.Context(), 0, os.Args[0], "-test.run=^TestDelegate$", "-test.v")
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	said, err := cmd.CombinedOutput()
	switch {
	case strings.Contains(string(said), "--- SKIP"):
		t.Skip(string(said))
	case errors.Is(err, exec.ErrNotFound), err != nil && !strings.Contains(string(said), "--- FAIL"):
		t.Skipf("there is no view with version 2 to be had: %v: %s", err, said)
	case err != nil || !strings.Contains(string(said), "--- PASS"):
		t.Errorf("%v: %s", err, said)
	}
}

func delegate(t *testing.T) {
	name := unique("csi-tandem-delegate")
	all, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || !all[0].IsUnified() {
		t.Fatalf("found %+v", all)
	}
	h := all[0]
	if err := probe(all); err != nil && !strings.Contains(err.Error(), "do not pass on") {
		t.Errorf("looking whether it can be: %v", err)
	}
	unified.Alone(t)
	controller := lend(t, h)
	if err := Join(name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(h.Path("cgroup.procs"), []byte("0"), 0); err != nil {
			t.Error(err)
		}
		if err := Remove(name); err != nil {
			t.Error(err)
		}
		if left, err := Left(name); err != nil || len(left) > 0 {
			t.Errorf("left %q, %v", left, err)
		}
	})
	if err := passOn(h.Path(name), controller); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a group with a process passes on %s: %v", controller, err)
	}
	if err := Delegate(h.Path(name), "system"); err != nil {
		t.Fatal(err)
	}
	if err := Make(name + "/pods"); err != nil {
		t.Fatal(err)
	}
	if given, err := readControllers(h.Path(name + "/pods")); err != nil || !slices.Contains(given, controller) {
		t.Errorf("a group below has %q, %v, want %s", given, err, controller)
	}
}

// lend gives a controller that groups of ours have, and for that lets the root pass one on while the test runs if it does not.
func lend(t *testing.T, h Hierarchy) string {
	t.Helper()
	content, err := os.ReadFile(h.Path("cgroup.subtree_control"))
	if err != nil {
		t.Fatal(err)
	}
	for c := range strings.FieldsSeq(string(content)) {
		if slices.Contains(wanted, c) {
			return c
		}
	}
	given, err := readControllers(h.Path(""))
	if err != nil || len(given) == 0 {
		t.Skipf("version 2 has no controller here: %v", err)
	}
	if err := passOn(h.Path(""), given[0]); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		err := errors.New("")
		// Whoever has it meanwhile, in a group of theirs, keeps it until they are done.
		for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			err = os.WriteFile(h.Path("cgroup.subtree_control"), []byte("-"+given[0]), 0)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return given[0]
}

// TestPassesOn: where groups would have no memory or no processors, that is said before anything is started, with what helps.
func TestPassesOn(t *testing.T) {
	for _, tt := range []struct{ given, says string }{
		{"cpuset cpu io memory pids\n", ""},
		{"cpu memory", "do not pass on pids; where /x/cgroup.controllers has them: echo '+pids' > /x/cgroup.subtree_control"},
		{"", "do not pass on cpu, memory, pids; where /x/cgroup.controllers has them: echo '+cpu +memory +pids' > /x/cgroup.subtree_control"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte(tt.given), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Hierarchy{Mount: "/x", own: "/"}.passesOn(dir)
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("with %q: %v, want %q", tt.given, err, tt.says)
		}
	}
}
