// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestSnapshotsDeletedAtOnce (S77, S82): a deletion races with the first write of the sidecar. Some of these snapshots go in the
// API server although the finalizers were acknowledged, and whatever was made for them goes too.
func TestSnapshotsDeletedAtOnce(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	w.disk("data")
	class := w.snapshotClass("delete")
	contents := map[string]string{}
	for i := range 40 {
		name := fmt.Sprintf("quick-%d", i)
		contents[name] = "snapcontent-" + string(w.snapshot(name, "data", class).UID)
		time.Sleep(time.Duration(i%10) * time.Millisecond)
		w.deleteSnapshot(name)
	}
	// One that lives a whole life afterwards: by then the others have been seen.
	last := w.snapshot("last", "data", class)
	w.ready("last")
	w.deleteSnapshot("last")
	contents["last"] = "snapcontent-" + string(last.UID)
	for name, content := range contents {
		w.snapshotGone(name)
		w.contentGone(content)
	}
	w.await("the driver stores nothing", func() (bool, string) {
		stored := w.inventory().Snapshots
		return len(stored) == 0, fmt.Sprint(stored)
	})
}
