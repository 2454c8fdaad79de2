// SPDX-License-Identifier: Apache-2.0

package content

import (
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
)

// round is one look at one content: what was read live in it, and what became of its calls.
type round struct {
	*Controller
	key kube.Key
	// live says that content and snapshot were confirmed; state is what was found of the snapshot.
	live  bool
	state snapshot.SnapshotState
	// shared names a content that keeps the same snapshot at the driver, as found then.
	shared string
	// taken is when that says that it was taken.
	taken *metav1.Time
	// called says that the driver was asked once.
	called bool
	// failed is the error of that call.
	failed error
	// own is what this round has read or written, which goes before the cache.
	own *kube.Content
	// content is what the last decision was about.
	content *kube.Content
}

// gather collects the input from the caches and from the round's own reads. False means that there is no
// such content.
func (r *round) gather() (snapshot.ContentInput, bool) {
	content := r.own
	if content == nil {
		found, ok := r.Contents.Lookup(r.key)
		if !ok || r.Contents.HasGone(found) {
			return snapshot.ContentInput{}, false
		}
		content = found
	}
	r.content = content
	in := snapshot.ContentInput{
		Content: &content.VolumeSnapshotContent, GroupHandle: content.GroupHandle(),
		Snapshot: r.state, Live: r.live, SharedWith: r.shared, Attempt: r.attemptOf(content),
		Capabilities: r.Capabilities, Now: r.Clock.Now(), Options: r.contentOptions(),
	}
	if name := content.Spec.VolumeSnapshotClassName; name != nil {
		in.Class, _ = r.Classes.Lookup(kube.Key{Name: *name})
	}
	if !r.live {
		in.Snapshot = r.cachedState(content)
	}
	in.Late = r.isLate(content)
	if in.Taken = r.taken; in.Taken == nil {
		in.Taken = r.takenAt(content)
	}
	return in, true
}

func (c *Controller) contentOptions() snapshot.ContentOptions {
	return snapshot.ContentOptions{
		Driver: c.DriverName, NamePrefix: c.options.NamePrefix, NameLength: c.options.NameLength,
		ExtraMetadata: c.options.ExtraMetadata, RetryStart: c.RetryStart, RetryMax: c.RetryMax,
	}
}

func (c *Controller) cachedState(content *kube.Content) snapshot.SnapshotState {
	if c.Snapshots == nil {
		return snapshot.Unknown
	}
	found, ok := c.Snapshots.Lookup(snapshotKey(content))
	if !ok {
		found = nil
	}
	return snapshot.StateOf(&content.VolumeSnapshotContent, found)
}

// takenAt is when the content's snapshot says that it was taken. What the cache shows of that stays true.
func (c *Controller) takenAt(content *kube.Content) *metav1.Time {
	if c.Snapshots == nil || hasHandle(content) {
		return nil // nobody asks
	}
	s, ok := c.Snapshots.Lookup(snapshotKey(content))
	if !ok {
		return nil
	}
	return takenOf(s, content)
}

// takenOf is when a snapshot of the name that the content refers to says that it was taken, if it is the content's; s is nil when there is none.
func takenOf(s *snapv1.VolumeSnapshot, content *kube.Content) *metav1.Time {
	if s == nil || s.UID != content.Spec.VolumeSnapshotRef.UID || s.Status == nil {
		return nil
	}
	return s.Status.CreationTime
}

func snapshotKey(content *kube.Content) kube.Key {
	ref := content.Spec.VolumeSnapshotRef
	return kube.Key{Namespace: ref.Namespace, Name: ref.Name}
}

// clockSkew is how much the clocks of this process and the API server may differ.
const clockSkew = 30 * time.Second

// begin notes what exists when the lead begins: for all of it somebody else may have sent a create.
func (c *Controller) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began, c.older = c.Clock.Now(), map[types.UID]bool{}
	for _, content := range c.Contents.All() {
		if !hasHandle(content) {
			c.older[content.UID] = true
		}
	}
}

// attemptOf is the memory of a content, brought up to what the content shows.
func (c *Controller) attemptOf(content *kube.Content) snapshot.Attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	attempt := c.attempts[content.UID]
	// The server's clock gives the creation time and ours the begin, and the cache may have lagged when the
	// lead began; what passes both tests is certainly younger than our lead. A process for one node has no lead: the label leads a content from
	// one to another.
	attempt.Fresh = !c.options.NodeDeployment && !c.began.IsZero() && !c.older[content.UID] && content.CreationTimestamp.After(c.began.Add(clockSkew))
	switch {
	case content.DeletionTimestamp != nil && !attempt.Leaving:
		// What waited for the next try of a living snapshot need not wait any more.
		attempt.Leaving, attempt.LeavingSince, attempt.NotBefore = true, c.Clock.Now(), time.Time{}
	case content.DeletionTimestamp == nil && isReady(content) && (hasHandle(content) || content.Spec.Source.SnapshotHandle != nil):
		delete(c.attempts, content.UID) // nothing is left to remember of a ready one
		return attempt
	}
	if hasHandle(content) && attempt.Tried == snapshot.Open {
		// The answer did get into the API; only ours to that write was lost.
		attempt.Tried = snapshot.Settled
	}
	c.attempts[content.UID] = attempt
	return attempt
}

func hasHandle(content *kube.Content) bool {
	return content.Status != nil && content.Status.SnapshotHandle != nil && *content.Status.SnapshotHandle != ""
}

func (c *Controller) remember(uid types.UID, attempt snapshot.Attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts[uid] = attempt
}

// hasten lets the next try come at once.
func (c *Controller) hasten(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if attempt, ok := c.attempts[uid]; ok {
		attempt.NotBefore = time.Time{}
		c.attempts[uid] = attempt
	}
}

func (c *Controller) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.attempts, uid)
	delete(c.older, uid)
}

// tidy forgets a content that went during the look: the watch has told of its end by then, and what was noted after
// that would stay for ever.
func (r *round) tidy() {
	if r.content == nil {
		return
	}
	if shown, ok := r.Contents.Lookup(r.key); !ok || shown.UID != r.content.UID {
		r.forget(r.content.UID)
	}
}

// isOpen tells that this process has sent a create whose outcome is not known.
func (c *Controller) isOpen(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attempts[uid].Tried == snapshot.Open
}

// assume lets the cache show what the server returned. An object that went with the write is not shown:
// the watch may have told of its end already.
func (r *round) assume(content *kube.Content) {
	r.own = content
	if content.DeletionTimestamp == nil || len(content.Finalizers) > 0 {
		r.Contents.Assume(content)
		return
	}
	r.Contents.AssumeGone(content)
}

// remade is by how much a content that was made anew is certainly younger than its snapshot.
const remade = time.Minute

// isLate tells that a content came long after its snapshot, as one that is made anew does, or that the cache has no snapshot for it.
func (c *Controller) isLate(content *kube.Content) bool {
	if c.Snapshots == nil || hasHandle(content) {
		return false
	}
	s, ok := c.Snapshots.Lookup(snapshotKey(content))
	return !ok || content.CreationTimestamp.Sub(s.CreationTimestamp.Time) > remade
}
