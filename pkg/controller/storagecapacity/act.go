// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"context"
	"errors"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/capacity"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// question is what the driver is asked.
type question struct {
	parameters map[string]string
	// asked is the segment as the driver may be told of it.
	asked topology.Segment
}

// gather finds what a key stands for; not ok means that nobody asks any more.
func (c *Controller) gather(key reconcile.Key) (q question, ok bool) {
	g, segment, ok := c.memory.lookup(key)
	q = question{parameters: g.parameters}
	if c.Capabilities.HasTopology() {
		q.asked = segment
	}
	return q, ok
}

// found are the objects of a slot. One that we have made and the watch has not shown is found by its name.
func (c *Controller) found(slot capacity.Slot) []*storagev1.CSIStorageCapacity {
	found := c.Objects.ByIndex(kube.BySlot, slotValue(slot))
	key, ok := c.memory.recall(slot)
	if !ok || slices.ContainsFunc(found, func(o *storagev1.CSIStorageCapacity) bool { return kube.KeyOf(o) == key }) {
		return found
	}
	own, exists := c.Objects.Lookup(key)
	if !exists {
		c.memory.shown(slot, key)
		return found
	}
	return append(found, own)
}

// publish writes the last answer for each class of a question. The classes are looked up anew: they may have
// changed while the driver was thinking. What fails for one class does not hold up the others.
func (c *Controller) publish(ctx context.Context, key reconcile.Key) error {
	g, _, _ := c.memory.lookup(key)
	var failures []error
	for _, class := range g.classes {
		slot := capacity.Slot{Class: class, Segment: key.Name}
		in, _ := c.memory.input(slot)
		in.Found = c.found(slot)
		for _, step := range c.rules().NextSteps(in) {
			failures = append(failures, c.act(ctx, slot, step))
		}
	}
	return errors.Join(failures...)
}

// tidy removes an object if it is still needless.
func (c *Controller) tidy(ctx context.Context, key reconcile.Key) error {
	object, exists := c.Objects.Lookup(kube.Key{Namespace: c.base.Namespace, Name: key.Name})
	if !exists {
		return nil
	}
	in := capacity.Input{Found: []*storagev1.CSIStorageCapacity{object}}
	slot, ok := capacity.SlotOf(object)
	if ok {
		in, _ = c.memory.input(slot)
		in.Found = c.found(slot)
	}
	for _, step := range c.rules().NextSteps(in) {
		if s, isDelete := step.(capacity.Delete); isDelete && s.Object.Name == key.Name {
			return c.act(ctx, slot, step)
		}
	}
	return nil
}

// act does one step.
func (c *Controller) act(ctx context.Context, slot capacity.Slot, step capacity.Step) error {
	switch s := step.(type) {
	case capacity.Keep:
		return nil
	case capacity.Create:
		return c.create(ctx, slot, s)
	case capacity.Update:
		return c.update(ctx, s)
	case capacity.Delete:
		return c.remove(ctx, s)
	}
	return fmt.Errorf("step %T has no effect here", step)
}

// create makes an object. It is remembered by its name until the watch shows it, so that the next look does
// not make it again. A crash, or an answer that is lost, may leave a second one, which goes when it is seen.
func (c *Controller) create(ctx context.Context, slot capacity.Slot, s capacity.Create) error {
	stored, err := kube.Create(ctx, c.Client, s.Object)
	if err != nil {
		return fmt.Errorf("creating the capacity of class %s in %s: %w", slot.Class, slot.Segment, err)
	}
	c.memory.remember(slot, kube.KeyOf(stored))
	c.Objects.Assume(stored)
	klog.FromContext(ctx).V(4).Info("capacity published", "object", stored.Name, "capacity", stored.Capacity.String())
	return nil
}

func (c *Controller) update(ctx context.Context, s capacity.Update) error {
	patched, err := kube.Patch(ctx, c.Client, s.Object, func(o *storagev1.CSIStorageCapacity) {
		o.Capacity, o.MaximumVolumeSize, o.OwnerReferences = s.Capacity, s.Maximum, s.Owners
	})
	switch {
	case kube.IsGone(err):
		// Its end comes through the watch, and with it the next look.
		c.Objects.Forget(kube.KeyOf(s.Object))
		return nil
	case err != nil:
		return fmt.Errorf("updating capacity %s: %w", s.Object.Name, err)
	}
	c.Objects.Assume(patched)
	klog.FromContext(ctx).V(4).Info("capacity updated", "object", patched.Name, "capacity", patched.Capacity.String())
	return nil
}

// remove deletes an object as it was when it was found needless; one that has changed is looked at again.
func (c *Controller) remove(ctx context.Context, s capacity.Delete) error {
	if err := kube.Delete(ctx, c.Client, s.Object); err != nil && !kube.IsGone(err) {
		return fmt.Errorf("deleting capacity %s: %w", s.Object.Name, err)
	}
	c.Objects.Forget(kube.KeyOf(s.Object))
	klog.FromContext(ctx).V(4).Info("capacity deleted", "object", s.Object.Name, "why", s.Why)
	return nil
}

// failed waits, longer each time, and no longer than a poll. The objects keep what they say.
func (c *Controller) failed(ctx context.Context, key reconcile.Key, err error) reconcile.Result {
	if ctx.Err() != nil {
		return reconcile.Result{}
	}
	s := c.memory.failed(key, c.Clock.Now())
	after := c.pace.between(s.failures)
	if s.isNews {
		klog.FromContext(ctx).Error(err, "The driver does not say how much room there is: the objects of the segment keep their values", "segments", s.failing, "again", after)
	}
	return reconcile.Result{After: after}
}

// few are so many segments that all of them can be urgent at once.
const few = 100

// spread asks about all segments of a group, not more often than so many questions should come.
func (c *Controller) spread(key reconcile.Key) reconcile.Result {
	if wait := c.memory.maySpread(key.Name, c.Clock.Now(), c.pace); wait > 0 {
		return reconcile.Result{After: wait}
	}
	asks := c.memory.keysOf(key.Name)
	for _, ask := range asks {
		if len(asks) <= few {
			c.memory.hurry(ask)
		}
		c.add(ask)
	}
	return reconcile.Result{}
}
