// SPDX-License-Identifier: Apache-2.0

package content

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// A content is led by its label to the process of another node, or away and back, while the create that the first one has sent is open. Catches a
// process that takes a content which is younger than itself for one that nobody has worked on.
func TestContentThatMovesToAnotherNode(t *testing.T) {
	for title, back := range map[string]bool{"to another node": false, "away and back": true} {
		t.Run(title, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.SnapshotClass(kit.SnapshotClassName))
			h.Driver.PutVolume("pv", 1<<30)
			// Node 2 works long before the content is made.
			narrow2 := kube.NewStore(kube.ContentIndexes())
			narrow1 := kube.NewStore(kube.ContentIndexes())
			room := func(store *kube.Store[*kube.Content]) *Controller {
				deps := Deps{
					Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
					Contents: store, Classes: h.Stores.SnapshotClasses, Workers: 1, RetryStart: time.Second, RetryMax: 5 * time.Minute,
				}
				c := New(Options{NamePrefix: "snapshot", NameLength: wellknown.FullUID, NodeDeployment: true}, deps)
				c.begin()
				return c
			}
			node1, node2 := room(narrow1), room(narrow2)
			h.Stores.Sync()
			h.Clock.Step(time.Hour)
			c := bound(h, func(c *kube.Content) {
				c.CreationTimestamp.Time = h.Clock.Now()
				c.Labels = map[string]string{wellknown.LabelManagedBy: "n1"}
				kube.SetAnnotation(c, wellknown.AnnBeingCreated, "yes") // as our binder makes it
				kube.SetAnnotation(c, wellknown.AnnSnapshotParameters, "{}")
			})
			made := now(h, c)
			narrow1.Show(made)
			node1.OnContent(kube.Change[*kube.Content]{New: made})
			h.Driver.Next("CreateSnapshot", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true})
			if _, err := node1.Reconcile(t.Context(), reconcile.Key{Name: c.Name}); err == nil {
				t.Fatal("no error")
			}
			if n := snapshotsAt(h); n != 1 {
				t.Fatal(n)
			}
			then, store := node2, narrow2
			node1.OnContent(kube.Change[*kube.Content]{Old: now(h, c), Deleted: true})
			if back {
				then, store = node1, narrow1
			}
			kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Labels[wellknown.LabelManagedBy] = "n2" })
			deleteBoth(h, c)
			mark(h, c)
			for range 10 {
				if at := now(h, c); at != nil {
					store.Show(at)
					_, _ = then.Reconcile(t.Context(), reconcile.Key{Name: c.Name})
				}
				h.Clock.Step(time.Minute)
			}
			if n := snapshotsAt(h); n != 0 || now(h, c) != nil {
				t.Errorf("%d snapshots left; content created %v, lead began %v; content %v\n%s", n, made.CreationTimestamp, then.began, now(h, c), strings.Join(h.Recorder.Events(), "\n"))
			}
		})
	}
}
