// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// restful is how long a pair without work is listened to.
const restful = time.Minute

// lines are those of a log from a given one on.
func (w *world) lines(p *stage.Process, from int) []string {
	w.Helper()
	text, err := os.ReadFile(p.Log)
	w.mustNot(err)
	return strings.Split(strings.TrimRight(string(text), "\n"), "\n")[from:]
}

// TestLogIsQuiet: with the flags of the sample deployments but for the format, what goes well leaves no line, however long it
// lasts, and what goes wrong leaves one for each try. One that logs each success, each look or each renewal is noise in a
// cluster that has thousands of claims.
func TestLogIsQuiet(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{
		provisioner: []string{"--logging-format=json", "--retry-interval-start=1h", "--retry-interval-max=1h"}, snapshotter: []string{"--resync-period=10s"},
	})
	class, snapshots := w.class("class"), w.snapshotClass("delete")
	w.claim("first", class)
	w.bound("first")
	w.snapshot("first", "first", snapshots)
	w.ready("first")
	from := map[*stage.Process]int{w.provisioner: len(w.lines(w.provisioner, 0)), w.snapshotter: len(w.lines(w.snapshotter, 0))}
	if most := 12; from[w.provisioner] > most || from[w.snapshotter] > most {
		t.Errorf("the start takes %d and %d lines", from[w.provisioner], from[w.snapshotter])
	}
	data := w.claim("data", class)
	volume := w.bound("data")
	w.snapshot("snap", "data", snapshots)
	_, content := w.ready("snap")
	w.deleteSnapshot("snap")
	w.contentGone(content.Name)
	w.deleteClaim("data")
	w.volumeGone(volume.Name)
	time.Sleep(restful)
	for p, before := range from {
		if more := w.lines(p, before); len(more) > 0 {
			t.Errorf("%s says about a life without a fault and %v of rest: %s", p.Name, restful, strings.Join(more, "\n"))
		}
	}
	full := w.rule(w.script.Fail(w.ctx, control.On("CreateVolume"), codes.ResourceExhausted))
	bad := w.claim("bad", class)
	w.told("bad", "ResourceExhausted")
	w.await("the failure is in the log", func() (bool, string) { return len(w.lines(w.provisioner, from[w.provisioner])) > 0, "nothing" })
	said := w.lines(w.provisioner, from[w.provisioner])
	if len(said) != 1 || !strings.Contains(said[0], `"id":"`+string(bad.UID)+`"`) {
		t.Errorf("about one failed try: %s", strings.Join(said, "\n"))
	}
	w.release(full)
	w.deleteClaim("bad")
	for i, line := range w.lines(w.provisioner, 0) {
		if !json.Valid([]byte(line)) {
			t.Errorf("line %d is no JSON: %s", i+1, line)
		}
	}
	if len(w.calls("CreateVolume")) < 3 || data.UID == "" {
		t.Error("nothing was looked at")
	}
}

// TestOneIDFromClaimToRPC: whoever looks for the UID of a claim or of a snapshot in the logs of both formats finds each line of
// its life, the calls of the driver among them, and each of these lines has it as its id. One that puts the object's key alone
// on its lines has a line about a volume that does not name its claim.
func TestOneIDFromClaimToRPC(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{
		provisioner: []string{"--logging-format=json", "--v=5", "--volume-name-prefix=vol"}, snapshotter: []string{"--v=5"},
	})
	claim := w.claim("data", w.class("class"))
	volume := w.bound("data")
	snap := w.snapshot("snap", "data", w.snapshotClass("delete"))
	_, content := w.ready("snap")
	w.deleteSnapshot("snap")
	w.contentGone(content.Name)
	w.deleteClaim("data")
	w.volumeGone(volume.Name)
	w.checkLife(w.provisioner, string(claim.UID), fmt.Sprintf("%q:%q", "id", claim.UID), "claims", "volumes", "/csi.v1.Controller/CreateVolume", "/csi.v1.Controller/DeleteVolume")
	w.checkLife(w.snapshotter, string(snap.UID), fmt.Sprintf("id=%q", snap.UID), "csi-snapshotter-content", "csi-snapshotter-snapshot", "/csi.v1.Controller/CreateSnapshot", "/csi.v1.Controller/DeleteSnapshot")
}

// checkLife looks at all lines that a queue has said about an object. The last look at one that is gone has nothing to take the
// id from.
func (w *world) checkLife(p *stage.Process, uid, id string, words ...string) {
	w.Helper()
	var found []string
	for _, line := range w.lines(p, 0) {
		if !strings.Contains(line, uid) || !strings.Contains(line, "queue") {
			continue
		}
		if !strings.Contains(line, id) && !strings.Contains(line, "nothing to do") && !strings.Contains(line, "Ignore") {
			w.Errorf("%s: without %s: %s", p.Name, id, line)
		}
		found = append(found, line)
	}
	for _, word := range words {
		if !slices.ContainsFunc(found, func(line string) bool { return strings.Contains(line, id) && strings.Contains(line, word) }) {
			w.Errorf("%s: none of %d lines about %s has %s", p.Name, len(found), uid, word)
		}
	}
}
