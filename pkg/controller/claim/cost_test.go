// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestWritesPerVolume (PP-9): a volume costs one write, a restore one more for the protection of its snapshot, and an event each.
// Catches one that writes the claim, or tells of every beginning.
func TestWritesPerVolume(t *testing.T) {
	for name, row := range map[string]struct {
		world func(*testing.T) *kit.Harness
		want  []string
	}{
		"an empty volume": {func(t *testing.T) *kit.Harness { return world(t, kit.Claim("data")) }, []string{"create persistentvolumes"}},
		"a restore":       {restoring, []string{"patch volumesnapshots", "create persistentvolumes"}},
	} {
		h := row.world(t)
		start(h)
		h.Settle()
		var writes []string
		for _, request := range h.API.Requests() {
			if request.Verb != "get" && request.Verb != "list" {
				writes = append(writes, request.Verb+" "+request.Resource)
			}
		}
		if d := cmp.Diff(row.want, writes); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if events := h.Recorder.Events(); len(events) != 1 || !strings.Contains(events[0], "ProvisioningSucceeded") {
			t.Errorf("%s: events %q", name, events)
		}
	}
}
