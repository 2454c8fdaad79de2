// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/protobuf/proto"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// innocent is a content that belongs to a snapshot nobody touches, and that a thief points at.
const innocent = "innocent"

// witness watches the promises: some while things happen, the others when all is quiet.
type witness struct {
	h     *kit.Harness
	wrong []string
	// kept are the handles of contents that went with policy Retain, retained the names of those that ever had it: they may
	// stay when their snapshot goes.
	kept, retained map[string]bool
	// before is the innocent content as it was.
	before string
	// lines are the effects until all was quiet.
	lines []string
}

func newWitness(h *kit.Harness) *witness {
	w := &witness{h: h, kept: map[string]bool{}, retained: map[string]bool{}}
	owner := kit.Snapshot("owner", "", kit.FromContent(innocent))
	h.Put(owner, kit.NamedContent(innocent, func(c *kube.Content) {
		c.Spec.VolumeSnapshotRef.Name, c.Spec.VolumeSnapshotRef.UID = "owner", owner.UID
	}))
	h.Driver.PutSnapshot(innocent, kit.VolumeHandle("pv-data"), 1<<30)
	h.Play(kit.Room{Name: "witness", Keys: kit.Feeds(kit.On(w.seeContent), kit.On(w.seeSnapshot))})
	return w
}

func (w *witness) complain(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// begin is called when the innocent are settled.
func (w *witness) begin() { w.before = w.innocent() }

func (w *witness) innocent() string {
	c, _ := kit.Read[*kube.Content](w.h.API, kube.Key{Name: innocent})
	return fmt.Sprint(c.ResourceVersion, c.Finalizers, c.Annotations, c.DeletionTimestamp)
}

func (w *witness) seeContent(change kube.Change[*kube.Content]) []reconcile.Key {
	c := change.Object()
	if c.Spec.DeletionPolicy != snapv1.VolumeSnapshotContentRetain {
		return nil
	}
	w.retained[c.Name] = true
	if change.Deleted && c.Status != nil && c.Status.SnapshotHandle != nil {
		w.kept[*c.Status.SnapshotHandle] = true
	}
	return nil
}

// seeSnapshot: I7, a snapshot that says it is ready has a content that points back and is ready.
func (w *witness) seeSnapshot(change kube.Change[*snapv1.VolumeSnapshot]) []reconcile.Key {
	s := change.Object()
	if change.Deleted || !isReady(s) || change.Old != nil && isReady(change.Old) {
		return nil
	}
	c, there := kit.Read[*kube.Content](w.h.API, kube.Key{Name: binding.BoundName(s)})
	if !there || !binding.PointsAt(&c.VolumeSnapshotContent, s) || c.Status == nil || c.Status.ReadyToUse == nil || !*c.Status.ReadyToUse {
		w.complain("I7 snapshot %s says that it is ready, and its content is %+v", s.Name, c)
	}
	return nil
}

// creating: I1, the mark is in the API when the call is sent, unless the handle is: then it is a question about readiness.
func (w *witness) creating(request *csi.CreateSnapshotRequest) {
	c, there := kit.Read[*kube.Content](w.h.API, kube.Key{Name: "snapcontent-" + strings.TrimPrefix(request.GetName(), "snapshot-")})
	if there && (c.Status == nil || c.Status.SnapshotHandle == nil) && c.Annotations[wellknown.AnnBeingCreated] != "yes" {
		w.complain("I1 %s is asked for, and %s has no mark", request.GetName(), c.Name)
	}
}

// erasing: I3, what a deletion at the driver needs, as it is in the API when the call is sent.
func (w *witness) erasing(handle string) {
	for _, c := range kit.All[*kube.Content](w.h.API) {
		if c.Status == nil || c.Status.SnapshotHandle == nil || *c.Status.SnapshotHandle != handle {
			continue
		}
		s, there := kit.Read[*snapv1.VolumeSnapshot](w.h.API, kube.Key{Namespace: c.Spec.VolumeSnapshotRef.Namespace, Name: c.Spec.VolumeSnapshotRef.Name})
		lives := there && s.UID == c.Spec.VolumeSnapshotRef.UID && s.DeletionTimestamp == nil
		if c.Spec.DeletionPolicy != snapv1.VolumeSnapshotContentDelete || c.DeletionTimestamp == nil || c.GroupHandle() != "" || lives {
			w.complain("I3 %s is deleted at the driver: snapshot lives %v, content %+v", handle, lives, c)
		}
		return
	}
	w.complain("I3 %s is deleted at the driver, and no content has it", handle)
}

// judge looks at everything when all is quiet, whatever happened before.
func (w *witness) judge(r *random) []string {
	w.checkObjects()
	w.checkDriver()
	w.checkRequests()
	w.checkLog()
	if now := w.innocent(); now != w.before {
		w.complain("I8 a content was touched by a snapshot that it does not point at: %s, was %s", now, w.before)
	}
	w.lines = w.h.Log.Lines()
	w.h.Log.Clear()
	before := len(w.h.API.Requests())
	r.live(0)
	w.h.Settle()
	if got := effects(w.h); len(got) > 0 || len(w.h.API.Requests()) > before {
		w.complain("I6 all is settled, and it costs %v", got)
	}
	return w.wrong
}

func (w *witness) checkObjects() {
	snapshots := kit.All[*snapv1.VolumeSnapshot](w.h.API)
	alive := map[string]bool{}
	for _, s := range snapshots {
		alive[string(s.UID)] = true
		if s.DeletionTimestamp != nil {
			w.complain("I10 snapshot %s cannot go: %v", s.Name, s.Finalizers)
		}
		if s.Status == nil || s.Status.Error == nil && !isReady(s) {
			w.complain("I10 snapshot %s is neither ready nor failing: %+v", s.Name, s.Status)
		}
	}
	for _, c := range kit.All[*kube.Content](w.h.API) {
		if !alive[string(c.Spec.VolumeSnapshotRef.UID)] && (!w.retained[c.Name] || c.DeletionTimestamp != nil) {
			w.complain("I10 content %s is left without snapshot: %v %v", c.Name, c.Annotations, c.DeletionTimestamp)
		}
	}
	needed := slices.ContainsFunc(snapshots, snapshot.UsesSource)
	if held := len(claimFinalizers(w.h)) > 0; held != needed {
		w.complain("I9 the claim is held: %v, needed: %v", held, needed)
	}
}

// checkDriver: I4, what the driver holds is what contents have, and what was kept on purpose.
func (w *witness) checkDriver() {
	wanted := map[string]bool{}
	for _, c := range kit.All[*kube.Content](w.h.API) {
		if c.Status != nil && c.Status.SnapshotHandle != nil {
			wanted[*c.Status.SnapshotHandle] = true
		}
	}
	stored := map[string]bool{}
	for _, line := range w.h.Driver.Inventory() {
		if words := strings.Fields(line); words[0] == "snapshot" {
			handle := kit.SnapshotHandle(words[1])
			stored[handle] = true
			if !wanted[handle] && !w.kept[handle] {
				w.complain("I4 the driver holds %s for nobody", words[1])
			}
		}
	}
	for handle := range wanted {
		if !stored[handle] {
			w.complain("I4 a content has %s, which the driver does not hold", handle)
		}
	}
}

// checkRequests: I5, each name is always asked for in the same way.
func (w *witness) checkRequests() {
	first := map[string]*csi.CreateSnapshotRequest{}
	for _, call := range w.h.Driver.Calls("CreateSnapshot") {
		request := call.Request.(*csi.CreateSnapshotRequest)
		if known := first[request.GetName()]; known != nil && !proto.Equal(known, request) {
			w.complain("I5 %v, and then %v", known, request)
		}
		first[request.GetName()] = request
	}
}

// checkLog reads the order of effects. I1: no create without a mark that the API server has before, unless it has the handle: then the create
// is a question, of a content that goes before it was ready as well. I2: no content is let go
// while a create may have made something whose handle is in no status.
func (w *witness) checkLog() {
	marked, open, answered, known := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, line := range w.h.Log.Lines() {
		words := strings.Fields(line)
		of := strings.TrimPrefix(strings.TrimPrefix(words[min(2, len(words)-1)], "snapcontent-"), "snapshot-")
		// An answer that was lost says nothing; in these lives such a request was served.
		refused := strings.Contains(line, " → ") && !strings.HasSuffix(line, " → ServerTimeout")
		switch words[0] + " " + words[1] {
		case "create volumesnapshotcontents":
			marked[of] = marked[of] || !refused
		case "patch volumesnapshotcontents":
			if refused {
				continue
			}
			if strings.Contains(line, wellknown.AnnBeingCreated+`":"yes"`) {
				marked[of] = true
			}
			if strings.Contains(line, wellknown.AnnBeingCreated+`":null`) {
				marked[of] = false
			}
			if strings.Contains(line, `"finalizers":null`) && open[of] {
				w.complain("I2 let go while its create is open: %s", line)
			}
		case "patch volumesnapshotcontents/status":
			if !refused && (strings.Contains(line, `"snapshotHandle":"`) || strings.HasSuffix(line, " → ServerTimeout") && answered[of]) {
				open[of], known[of] = false, true
			}
			known[of] = known[of] && !strings.Contains(line, `"snapshotHandle":null`)
		case "driver DeleteSnapshot": // the handle is known, also when the answer to its write was lost
			open[strings.TrimPrefix(of, "handle-of-snapshot-")] = false
		case "driver CreateSnapshot":
			if !marked[of] && !known[of] {
				w.complain("I1 no mark before: %s", line)
			}
			answered[of] = words[len(words)-1] == "OK"
			switch words[len(words)-1] {
			case "InvalidArgument":
				open[of] = false
			case "PermissionDenied": // says nothing about an earlier call
			default:
				open[of] = true
			}
		}
	}
}
