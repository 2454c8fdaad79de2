// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// Watch tells the queue which changes concern it; attachments is nil for drivers without.
func (c *Controller) Watch(volumes *kube.Informer[*corev1.PersistentVolume], attachments *kube.Informer[*storagev1.VolumeAttachment]) {
	volumes.OnChange(func(change kube.Change[*corev1.PersistentVolume]) { c.queue.Hear(c.KeysOfVolume(change)) })
	if attachments != nil {
		attachments.OnChange(func(change kube.Change[*storagev1.VolumeAttachment]) { c.queue.Hear(c.KeysOfAttachment(change)) })
	}
}

// all are the volumes to begin with.
func (c *Controller) all() (keys []reconcile.Key) {
	for _, volume := range c.Volumes.All() {
		keys = append(keys, c.KeysOfVolume(kube.Change[*corev1.PersistentVolume]{New: volume})...)
	}
	return keys
}

// KeysOfVolume are the volumes to look at after a change of one: those about which there is something to
// do. Most of a cluster's volumes are bound and protected, and never enter the queue.
func (c *Controller) KeysOfVolume(change kube.Change[*corev1.PersistentVolume]) []reconcile.Key {
	if old := change.Old; old != nil && (change.New == nil || change.New.UID != old.UID) {
		c.memory.forget(old.Name, old.UID)
		c.queue.Forget(reconcile.Key{Name: old.Name})
	}
	var keys []reconcile.Key
	if change.New != nil && c.isToDo(change.New) {
		keys = append(keys, reconcile.Key{Name: change.New.Name})
	}
	// A deletion waits for the others that have the volume.
	for _, twin := range c.twins(change.Object()) {
		if c.isToDo(twin) {
			keys = append(keys, reconcile.Key{Name: twin.Name})
		}
	}
	return keys
}

// tidy forgets a volume that went during the look: the watch has told of its end by then, and what was noted after that
// would stay for ever.
func (c *Controller) tidy(volume *corev1.PersistentVolume) {
	if volume == nil {
		return
	}
	if shown, ok := c.Volumes.Lookup(kube.KeyOf(volume)); !ok || shown.UID != volume.UID {
		c.memory.forget(volume.Name, volume.UID)
	}
}

func (c *Controller) isToDo(volume *corev1.PersistentVolume) bool {
	in := provision.VolumeInput{Config: c.config(), Volume: volume}
	in.Deleted, _ = c.memory.of(volume.Name, volume.UID)
	step := provision.NextVolumeStep(in)
	_, ignored := step.(provision.Ignore)
	return !ignored || c.memory.isAsked(volume.UID) && in.Doubted(step) != nil
}

// KeysOfAttachment is the volume that a node has let go of.
func (c *Controller) KeysOfAttachment(change kube.Change[*storagev1.VolumeAttachment]) []reconcile.Key {
	if !change.Deleted || change.Old.Spec.Source.PersistentVolumeName == nil {
		return nil
	}
	return []reconcile.Key{{Name: *change.Old.Spec.Source.PersistentVolumeName}}
}

func (c *Controller) config() provision.Config {
	config := provision.Config{Driver: c.DriverName, Capabilities: c.Capabilities, Local: c.Local}
	config.Racing.Max = c.Patience
	if c.translator != nil {
		config.Migration = c.translator
	}
	return config
}

func (c *Controller) gather(key reconcile.Key) provision.VolumeInput {
	in := provision.VolumeInput{Config: c.config(), Now: c.Clock.Now()}
	volume, ok := c.Volumes.Lookup(kube.Key{Name: key.Name})
	if !ok {
		return in
	}
	return c.about(in, volume)
}

// about fills in what belongs to a volume.
func (c *Controller) about(in provision.VolumeInput, volume *corev1.PersistentVolume) provision.VolumeInput {
	in.Volume = volume
	c.memory.revise(volume)
	in.Deleted, in.SecretMissing = c.memory.of(volume.Name, volume.UID)
	if in.Deleted && c.Claims != nil { // nothing is read live any more, and who waits for the volume has to hear that it is empty
		for _, claim := range c.candidates(volume) {
			if owns(claim, volume) {
				in.Owner = claim
			}
		}
	}
	if c.Local.Node != "" {
		in.Since = c.memory.first(volume.UID, in.Now)
	}
	in.Class, _ = c.Classes.Lookup(kube.Key{Name: provision.VolumeClass(volume)})
	if c.Attachments != nil {
		in.Attachments = c.Attachments.ByIndex(kube.ByVolume, volume.Name)
	}
	return in
}

// fetchLive reads the PersistentVolume anew: whether its data may go is not decided on a cache, which may
// not know yet that somebody has taken the volume back or changed its policy.
func (c *Controller) fetchLive(ctx context.Context, in provision.VolumeInput) (provision.VolumeInput, error) {
	live, err := kube.Fetch[*corev1.PersistentVolume](ctx, c.Client, kube.KeyOf(in.Volume))
	if kube.IsGone(err) {
		return provision.VolumeInput{Config: in.Config, Now: in.Now}, nil
	}
	if err != nil {
		return in, err
	}
	in.Live = true
	in = c.about(in, live)
	if in.Owner, err = c.fetchOwner(ctx, live); err != nil {
		return in, err
	}
	in.Twins, err = c.fetchTwins(ctx, live)
	if c.Attachments != nil {
		for _, twin := range in.Twins {
			in.Attachments = append(slices.Clip(in.Attachments), c.Attachments.ByIndex(kube.ByVolume, twin.Name)...)
		}
	}
	return in, err
}
