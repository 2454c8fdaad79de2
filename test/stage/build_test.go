// SPDX-License-Identifier: Apache-2.0

package stage

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

// fakeGo works for ever in a folder that it makes where go would, and removes it only if it is let end.
const fakeGo = `#!/bin/sh
mkdir "${GOTMPDIR:-$TMPDIR}/go-build1" && touch "$TOLD" && exec sleep 1000
`

// TestInterruptedBuildLeavesNothing catches a build whose go is killed, and leaves what it worked in beside everybody's files.
func TestInterruptedBuildLeavesNothing(t *testing.T) {
	programs, source, told, temporary, target := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "told"), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "go"), []byte(fakeGo), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TOLD", told)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- compile(ctx, source, filepath.Join(target, "program"), "v0", io.Discard) }()
	until(t, "go works", func() bool {
		_, err := os.Stat(told)
		return err == nil
	})
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	for _, dir := range []string{temporary, target} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
}

// TestPlaceOfAStage: the folder is known by the path that tables of mounts have, and one that is too deep for sockets is refused with what
// helps before anything is built. Catches mounts that are not found, and a driver that cannot listen, behind a link or a long path.
func TestPlaceOfAStage(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real, link := filepath.Join(base, "real"), filepath.Join(base, "link")
	if err := errors.Join(os.Mkdir(real, 0o700), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	if s := (&Stage{dir: link}); s.place() != nil || s.dir != real {
		t.Errorf("it is at %s, want %s", s.dir, real)
	}
	deep := filepath.Join(base, strings.Repeat("d", 100))
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", deep)
	if s, err := Open(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "set TMPDIR to one of at most ") {
		t.Errorf("%v, %v", s, err)
	}
	if left, err := os.ReadDir(deep); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
