// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
)

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

// fakeGo tells who is marked when it is called, and fails.
const fakeGo = `#!/bin/sh
ls "$XDG_CACHE_HOME/csi-tandem/machines" >> "$TOLD"; exit 1
`

// TestRealStageIsMarkedFirst: whoever is killed before there are nodes leaves a folder too. Catches a mark that is made with the nodes:
// nobody removes what is left of a run that was killed while its control plane was built or started.
func TestRealStageIsMarkedFirst(t *testing.T) {
	// Its path has to be short.
	temporary, err := os.MkdirTemp("", "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	programs, cache, told := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "told")
	if err := os.WriteFile(filepath.Join(programs, "go"), []byte(fakeGo), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	for name, value := range map[string]string{"XDG_CACHE_HOME": cache, "TOLD": told, "TMPDIR": temporary, ProgramsVariable: "", controlplane.BinaryVariable: ""} {
		t.Setenv(name, value)
	}
	if s, err := Open(t.Context(), Options{Real: []string{"worker-1"}}); err == nil {
		t.Fatal("it opens without programs: ", s.Close())
	}
	if marked, err := os.ReadFile(told); err != nil || !strings.HasSuffix(string(marked), ".json\n") {
		t.Errorf("marked when go was called: %q, %v", marked, err)
	}
	for _, dir := range []string{temporary, filepath.Join(cache, "csi-tandem", "machines")} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
}
