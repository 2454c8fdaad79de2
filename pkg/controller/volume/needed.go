// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// Who else may need the data is looked up in the caches, and what they show is read live: a deletion costs
// one live read as long as nobody else is in sight.

// twins are the other PersistentVolumes of the same volume, as far as the cache knows. It finds those that
// name the driver, not those in the form from before a migration.
func (c *Controller) twins(volume *corev1.PersistentVolume) []*corev1.PersistentVolume {
	volume, err := c.config().AsCSI(volume)
	if err != nil || volume.Spec.CSI == nil || volume.Spec.CSI.Driver != c.DriverName {
		return nil
	}
	var others []*corev1.PersistentVolume
	for _, other := range c.Volumes.ByIndex(kube.ByHandle, kube.HandleKey(c.DriverName, volume.Spec.CSI.VolumeHandle)) {
		if other.Name != volume.Name {
			others = append(others, other)
		}
	}
	return others
}

func (c *Controller) fetchTwins(ctx context.Context, volume *corev1.PersistentVolume) ([]*corev1.PersistentVolume, error) {
	translated, err := c.config().AsCSI(volume)
	if err != nil {
		return nil, nil //nolint:nilerr // the decision meets the same error and tells it
	}
	var live []*corev1.PersistentVolume
	for _, other := range c.twins(volume) {
		found, err := kube.Fetch[*corev1.PersistentVolume](ctx, c.Client, kube.KeyOf(other))
		switch {
		case kube.IsGone(err):
		case err != nil:
			return nil, fmt.Errorf("reading PersistentVolume %s, which has the same volume: %w", other.Name, err)
		case found.Spec.CSI != nil && found.Spec.CSI.Driver == c.DriverName && found.Spec.CSI.VolumeHandle == translated.Spec.CSI.VolumeHandle:
			live = append(live, found)
		}
	}
	return live, nil
}

// fetchOwner finds a claim that names the volume as its own, whatever the volume has on record for it:
// objects that were restored from a backup, or edited by hand, refer to other UIDs and names.
func (c *Controller) fetchOwner(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	if c.Claims == nil {
		return nil, nil
	}
	for _, cached := range c.Claims.ByIndex(kube.ByVolume, volume.Name) {
		if !owns(cached, volume) {
			continue
		}
		live, err := kube.Fetch[*corev1.PersistentVolumeClaim](ctx, c.Client, kube.KeyOf(cached))
		switch {
		case kube.IsGone(err):
		case err != nil:
			return nil, fmt.Errorf("reading claim %s/%s: %w", cached.Namespace, cached.Name, err)
		case owns(live, volume):
			return live, nil
		}
	}
	return c.fetchReferred(ctx, volume)
}

// fetchReferred reads the claim that a volume refers to, in a process for one node: its caches lack the claims of other
// nodes, while it may see to the end of a volume that one of them has.
func (c *Controller) fetchReferred(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	ref := volume.Spec.ClaimRef
	if c.Local.Node == "" || ref == nil || ref.Name == "" || ref.Namespace == "" {
		return nil, nil
	}
	live, err := kube.Fetch[*corev1.PersistentVolumeClaim](ctx, c.Client, kube.Key{Namespace: ref.Namespace, Name: ref.Name})
	switch {
	case kube.IsGone(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading claim %s/%s: %w", ref.Namespace, ref.Name, err)
	case owns(live, volume):
		return live, nil
	}
	return nil, nil
}

// owns tells that a claim which is not going has the volume. Of claims that the volume does not refer to,
// only those count that were bound once: anybody can write the name of a volume into a new claim.
func owns(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	if claim.Spec.VolumeName != volume.Name || claim.DeletionTimestamp != nil {
		return false
	}
	ref := volume.Spec.ClaimRef
	referred := ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name
	return referred || claim.Status.Phase == corev1.ClaimBound || claim.Status.Phase == corev1.ClaimLost
}
