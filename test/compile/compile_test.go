// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeGo works for ever in a folder that it makes where go would.
const fakeGo = `#!/bin/sh
mkdir "${GOTMPDIR:-$TMPDIR}/go-build1" && touch "$TOLD" && exec sleep 1000
`

// TestInterruptedBuildLeavesNothing catches a build whose go is killed, and leaves what it worked in beside everybody's files.
func TestInterruptedBuildLeavesNothing(t *testing.T) {
	programs, told, temporary, work := t.TempDir(), filepath.Join(t.TempDir(), "told"), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "go"), []byte(fakeGo), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TOLD", told)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, Job{Name: "x", Source: t.TempDir(), Work: work, Out: io.Discard}) }()
	for deadline := time.Now().Add(time.Minute); !isFile(told); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("go does not work")
		}
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	for _, dir := range []string{temporary, work} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
}

// TestFailureIsTold catches a build whose words are lost: whoever waits learns that it failed, and not why.
func TestFailureIsTold(t *testing.T) {
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "x.go"), []byte("package x\n\nfunc f() { undefinedThing() }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), Job{Name: "x", Source: source, Work: t.TempDir(), Args: []string{"x.go"}, Env: []string{"GOFLAGS="}, Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "undefinedThing") {
		t.Errorf("it says %v", err)
	}
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
