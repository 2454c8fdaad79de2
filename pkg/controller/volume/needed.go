// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Who else may need the data is looked up in the caches, and what they show is read live: a deletion costs
// one live read as long as nobody else is in sight.

// twins are the other PersistentVolumes of the same volume, as far as the cache knows, in the form from before a migration too: each may
// turn out to be of another one.
func (c *Controller) twins(volume *corev1.PersistentVolume) []*corev1.PersistentVolume {
	volume, err := c.config().AsCSI(volume)
	if err != nil || volume.Spec.CSI == nil || volume.Spec.CSI.Driver != c.DriverName {
		return nil
	}
	handle := volume.Spec.CSI.VolumeHandle
	var others []*corev1.PersistentVolume
	for _, other := range kube.FindVolumes(c.Volumes, c.DriverName, handle, c.config().InTreeForm(handle)) {
		if other.Name != volume.Name {
			others = append(others, other)
		}
	}
	return others
}

func (c *Controller) fetchTwins(ctx context.Context, volume *corev1.PersistentVolume) ([]provision.Twin, error) {
	translated, err := c.config().AsCSI(volume)
	if err != nil || translated.Spec.CSI == nil {
		return nil, nil //nolint:nilerr // the decision meets the same error and tells it
	}
	var live []provision.Twin
	for _, other := range c.twins(volume) {
		found, err := kube.Fetch[*corev1.PersistentVolume](ctx, c.Client, kube.KeyOf(other))
		if kube.IsGone(err) {
			continue
		}
		same := false
		if err == nil {
			same, err = c.config().IsOfHandle(found, translated.Spec.CSI.VolumeHandle)
		}
		if err != nil {
			return nil, fmt.Errorf("reading PersistentVolume %s, which has the same volume: %w", other.Name, err)
		}
		if !same {
			continue
		}
		twin := provision.Twin{PersistentVolume: found}
		if provision.IsLeft(found) { // else it has the volume, whatever becomes of the question for its claim
			if twin.Owner, err = c.fetchOwner(ctx, found); err != nil {
				return nil, err
			}
		}
		live = append(live, twin)
	}
	return live, nil
}

// fetchOwner finds a claim that names the volume as its own, whatever the volume has on record for it:
// objects that were restored from a backup, or edited by hand, refer to other UIDs and names.
func (c *Controller) fetchOwner(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	if c.Claims == nil {
		return nil, nil
	}
	for _, cached := range c.candidates(volume) {
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

// candidates are the claims that name a volume, and the one that it leads to and that has no volume yet, as far as the cache knows.
func (c *Controller) candidates(volume *corev1.PersistentVolume) []*corev1.PersistentVolumeClaim {
	claims := c.Claims.ByIndex(kube.ByVolume, volume.Name)
	ref := volume.Spec.ClaimRef
	if ref == nil {
		return claims
	}
	if referred, ok := c.Claims.Lookup(kube.Key{Namespace: ref.Namespace, Name: ref.Name}); ok && referred.Spec.VolumeName == "" {
		claims = append(slices.Clip(claims), referred)
	}
	return claims
}

// fetchReferred reads the claim that a volume refers to, where no cache can be trusted to have it. In a process for one node they lack the
// claims of other nodes, while it may see to the end of a volume that one of them has. And a volume that leads to another claim than it was made
// for may have been led there just now, to a claim that this cache, which another watch fills, does not have yet. The claim that it was made
// for, whose UID is in its name, was there long before.
func (c *Controller) fetchReferred(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.Name == "" || ref.Namespace == "" || c.Local.Node == "" && isMadeFor(volume.Name, string(ref.UID)) {
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

// isMadeFor tells that a name has so much of a UID in it that this is no chance: a name like data-1 fits one UID in sixteen.
func isMadeFor(name, uid string) bool {
	const enough = 8
	return len(name)-strings.LastIndex(name, "-")-1 >= enough && wellknown.IsNameFor(name, uid)
}

// owns tells that a claim which is not going has the volume, or is to get it. Of claims that the volume does not refer to, only
// those count that were bound once: anybody can write the name of a volume into a new claim. One that the volume refers to by its UID is
// about to be bound to it, unless it has another volume: then this one was let go for that.
func owns(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	if claim.DeletionTimestamp != nil {
		return false
	}
	ref := volume.Spec.ClaimRef
	referred := ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name
	switch claim.Spec.VolumeName {
	case volume.Name:
		return referred || claim.Status.Phase == corev1.ClaimBound || claim.Status.Phase == corev1.ClaimLost
	case "":
		return referred && ref.UID == claim.UID
	default:
		return false
	}
}
