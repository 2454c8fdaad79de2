// SPDX-License-Identifier: Apache-2.0

package node

import (
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
		if isSaid := err != nil && strings.Contains(strings.Join(Missing(), "; "), err.Error()); err != nil && !isSaid && foreign() == "" {
			t.Errorf("%d characters: it is not among what is missing", length)
		}
	}
}
