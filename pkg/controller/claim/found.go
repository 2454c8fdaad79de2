// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// A record that could not be read at first is read while the rooms are at work. What is found on it for a claim waits beside what
// this process remembers, until whoever works on the claim looks again: he holds an attempt that he has read before, and would write
// over what is found, or forget it with his own.

// adopt takes up what another process has begun, before anything else is done about it.
func (c *Controller) adopt(ctx context.Context, found []attempt.Entry) {
	for _, entry := range found {
		open, err := c.parse(entry)
		if err != nil {
			c.park(ctx, entry, err)
			continue
		}
		open = open.AsResumed(c.lookup(keyOfRef(open.Ref)))
		if !c.memory.find(open, func() bool { return c.record.Has(entry.Key) }) {
			continue // the end of its PersistentVolume has taken it off meanwhile
		}
		klog.FromContext(ctx).Info("Going on with a volume that an earlier process has begun", "volume", open.Name(), "claim", open.Ref.Namespace+"/"+open.Ref.Name)
		c.queue.Add(keyOfRef(open.Ref))
	}
}

var errDoubtful = errors.New("more volumes came to their end without the right to the record than are remembered, and this one may be among them")

// errBetween is about what was made, kept, and perhaps brought to its end by those who do not read the record.
var errBetween = errors.New("its claim is gone, and others may have led since it was written, who may have made the volume, and somebody may have kept it")

func (c *Controller) parse(entry attempt.Entry) (*provision.Attempt, error) {
	open, err := provision.ParseRecord(provision.Written(entry.Document), c.config.Migration)
	switch {
	case err != nil:
		return nil, err
	case open.Ref.UID != entry.UID:
		return nil, fmt.Errorf("it is recorded for claim %s and speaks of claim %s", entry.UID, open.Ref.UID)
	case entry.Doubtful && !c.isKept(open):
		return nil, errDoubtful
	case entry.Between && !c.isKept(open):
		return nil, errBetween
	}
	return open, nil
}

// isKept tells that a claim is there, and so is its volume if it has one: none of it came to its end.
func (c *Controller) isKept(open *provision.Attempt) bool {
	claim := c.lookup(keyOfRef(open.Ref))
	if provision.IsAbandoned(claim) || claim.Spec.VolumeName == "" {
		return !provision.IsAbandoned(claim)
	}
	_, ok := c.Volumes.Lookup(kube.Key{Name: claim.Spec.VolumeName})
	return ok
}

// park keeps on record what cannot be repeated by this process: a newer one, or a person, may understand it.
func (c *Controller) park(ctx context.Context, entry attempt.Entry, cause error) {
	err := fmt.Errorf("the entry of claim %s is not understood, so that a volume may be left at the driver: %w; remove the entry when that is cleared up", entry.Key, cause)
	klog.FromContext(ctx).Error(err, "An open attempt stays on record")
	c.Recorder.Warning(c.record.Object(entry.Key), wellknown.ReasonProvisioningFailed, err.Error())
	c.record.ParkUnread(entry.Key)
}

// find keeps what was found of a claim, unless it is over: it was taken off the record, or is being taken off.
func (m *memory) find(found *provision.Attempt, stays func() bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := found.Ref.UID
	if m.settling[uid] > 0 || !stays() {
		return false
	}
	if other := m.found[uid]; other != nil {
		found = other.Beside(found)
	}
	m.found[uid] = found
	return true
}

// join is what is remembered of a claim, together with what was found of it. Only who works on the claim may ask.
func (m *memory) join(uid types.UID, now time.Time) *provision.Attempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, own := m.found[uid], m.attempts[uid]
	if found == nil {
		return own
	}
	delete(m.found, uid)
	if own == nil {
		m.began[uid] = now
	} else {
		found = own.Beside(found)
	}
	m.attempts[uid] = found
	return found
}

// unlessFound does something while nothing waits that was found of a claim.
func (m *memory) unlessFound(uid types.UID, do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.found[uid] == nil {
		do()
	}
}

func (m *memory) isFound(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.found[uid] != nil
}
