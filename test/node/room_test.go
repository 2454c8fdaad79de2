// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRoomForSockets: a folder for temporary files that is too deep is told first, with the length that does it. Catches one that is found
// out by a kubelet, when all the rest is up, as a socket that cannot be bound.
func TestRoomForSockets(t *testing.T) {
	nodes := []string{"a", "worker-1"}
	for length := 20; length < 40; length++ {
		temporary := "/" + strings.Repeat("t", length-1)
		t.Setenv("TMPDIR", temporary)
		dir := filepath.Join(temporary, "tandem-0123456789", "n")
		path := Registration(filepath.Join(dir, "worker-1", "kubelet"), strings.Repeat("x", nameRoom))
		err := checkRoom(dir, nodes)
		if (err == nil) != (len(path) <= socketLimit) {
			t.Fatalf("%d characters: %v", length, err)
		}
		if err != nil && (!strings.Contains(err.Error(), temporary) || !strings.Contains(err.Error(), "at most 25 characters")) {
			t.Errorf("%d characters: %v", length, err)
		}
	}
}

// TestMissingLooksAtTheFolder: what the folder for temporary files cannot do is told first, and nothing is left in it. Catches a demo that
// fails after minutes, when the first pod is to start, where it could have played with simulated nodes.
func TestMissingLooksAtTheFolder(t *testing.T) {
	if who := foreign(); who != "" {
		t.Skip(who)
	}
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 30))
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", deep)
	if said := strings.Join(Missing(), "; "); !strings.Contains(said, deep+", is too long") {
		t.Errorf("missing: %s", said)
	}
	if left, err := os.ReadDir(deep); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := canLayer("/proc"); err == nil {
		t.Error("/proc can have layers")
	}
}
