// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// The finalizers are the same for all drivers, while what is made for claims that are gone is known to the
// provisioner of the driver alone. A source is released only by the one whose driver has it; when that
// cannot be told, it stays.

// isSnapshotOurs reads the content of a snapshot live. One that is not bound to any, or whose content is
// gone, can serve no restore of any driver.
func (c *Controller) isSnapshotOurs(ctx context.Context, snapshot *snapv1.VolumeSnapshot) (bool, error) {
	var name string
	switch status, source := snapshot.Status, snapshot.Spec.Source; {
	case status != nil && status.BoundVolumeSnapshotContentName != nil:
		name = *status.BoundVolumeSnapshotContentName
	case source.VolumeSnapshotContentName != nil:
		name = *source.VolumeSnapshotContentName
	}
	if name == "" {
		return true, nil
	}
	content, err := kube.Fetch[*kube.Content](ctx, c.Client, kube.Key{Name: name})
	switch {
	case kube.IsGone(err):
		return true, nil
	case apierrors.IsForbidden(err) && snapshot.DeletionTimestamp == nil:
		return false, nil // what may not be read is not ours to release; a new right is no event
	case err != nil:
		return false, fmt.Errorf("reading the content of source snapshot %s/%s: %w", snapshot.Namespace, snapshot.Name, err)
	}
	return content.Spec.Driver == c.DriverName && (c.isManagedHere(content) || c.isOurTurn(snapshot)), nil
}

// ownersTurn is how long a source that is being deleted is left to the process of the node that has the data. That
// node may never come back, and with it a claim, and the whole namespace, would stay for ever. What others cannot see is
// only whether a volume is being made from it for a claim that is gone.
const ownersTurn = 5 * time.Minute

// untilTurn is when a source is looked at again that is another node's; 0 when there is no need to.
func (c *Controller) untilTurn(source metav1.Object) time.Duration {
	if c.Local.Node == "" || source == nil || source.GetDeletionTimestamp() == nil {
		return 0
	}
	return max(source.GetDeletionTimestamp().Add(ownersTurn).Sub(c.Clock.Now()), 0)
}

// isOurTurn tells that a process for another node may release a source as well.
func (c *Controller) isOurTurn(source metav1.Object) bool {
	return source.GetDeletionTimestamp() != nil && c.untilTurn(source) == 0
}

// isManagedHere tells whether a source is released from this node. One that says nothing of a node is released
// by whoever comes first.
func (c *Controller) isManagedHere(content *kube.Content) bool {
	node := content.Labels[wellknown.LabelManagedBy]
	return c.Local.Node == "" || node == "" || node == wellknown.NodeLabel(c.Local.Node)
}

func (c *Controller) config() provision.Config {
	return provision.Config{Driver: c.DriverName, Local: c.Local}
}

// isClaimOurs reads the volume of a source claim live.
func (c *Controller) isClaimOurs(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	if node := claim.Annotations[wellknown.AnnSelectedNode]; c.Local.Node != "" && node != "" && node != c.Local.Node && !c.isOurTurn(claim) {
		return false, nil
	}
	if claim.Spec.VolumeName == "" {
		return true, nil
	}
	volume, err := kube.Fetch[*corev1.PersistentVolume](ctx, c.Client, kube.Key{Name: claim.Spec.VolumeName})
	switch {
	case kube.IsGone(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reading the volume of source claim %s/%s: %w", claim.Namespace, claim.Name, err)
	case !c.config().IsHere(volume) && !c.isOurTurn(claim):
		return false, nil
	case volume.Spec.CSI != nil:
		return volume.Spec.CSI.Driver == c.DriverName, nil
	}
	return c.config().IsVolumeOurs(volume), nil
}
