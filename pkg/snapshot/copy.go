// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// BuildSnapshotStatus is the status of a snapshot as its content says, what users should be told of the
// change, and whether there is one. What says that data exists (name, creation time, size) is written once
// and kept; readiness and error follow the content.
func BuildSnapshotStatus(s *snapv1.VolumeSnapshot, c *snapv1.VolumeSnapshotContent) (*snapv1.VolumeSnapshotStatus, []Told, bool) {
	status, from := &snapv1.VolumeSnapshotStatus{}, &snapv1.VolumeSnapshotContentStatus{}
	if s.Status != nil {
		status = s.Status.DeepCopy()
	}
	if c.Status != nil {
		from = c.Status
	}
	before := *status
	if status.BoundVolumeSnapshotContentName == nil || *status.BoundVolumeSnapshotContentName != c.Name {
		name := c.Name
		status.BoundVolumeSnapshotContentName = &name
	}
	copyData(status, from)
	if ready := from.ReadyToUse != nil && *from.ReadyToUse; status.ReadyToUse == nil || *status.ReadyToUse != ready {
		status.ReadyToUse = &ready
	}
	status.Error = copyError(before.Error, from.Error)
	if !differs(&before, status) {
		return nil, nil, false
	}
	return status, tellProgress(s, &before, status), true
}

// copyData copies what is known of the data, where nothing is known yet.
func copyData(status *snapv1.VolumeSnapshotStatus, from *snapv1.VolumeSnapshotContentStatus) {
	if from.CreationTime != nil && (status.CreationTime == nil || status.CreationTime.Unix() != time.Unix(0, *from.CreationTime).Unix()) {
		taken := metav1.NewTime(time.Unix(0, *from.CreationTime))
		status.CreationTime = &taken
	}
	if from.RestoreSize != nil && (status.RestoreSize == nil || status.RestoreSize.IsZero() && *from.RestoreSize > 0) {
		status.RestoreSize = resource.NewQuantity(*from.RestoreSize, resource.BinarySI)
	}
}

// copyError keeps the error that is shown when the content's says the same.
func copyError(shown, current *snapv1.VolumeSnapshotError) *snapv1.VolumeSnapshotError {
	switch {
	case current == nil:
		return nil
	case shown != nil && fault.IsSameMessage(messageOf(shown), messageOf(current)):
		return shown
	default:
		return current.DeepCopy()
	}
}

func differs(a, b *snapv1.VolumeSnapshotStatus) bool {
	return a.BoundVolumeSnapshotContentName != b.BoundVolumeSnapshotContentName || a.CreationTime != b.CreationTime ||
		a.ReadyToUse != b.ReadyToUse || a.RestoreSize != b.RestoreSize || a.Error != b.Error
}

// tellProgress finds one event for the change. A driver that is ready at once is not worth three.
func tellProgress(s *snapv1.VolumeSnapshot, before, after *snapv1.VolumeSnapshotStatus) []Told {
	name := s.Namespace + "/" + s.Name
	wasReady := before.ReadyToUse != nil && *before.ReadyToUse
	switch {
	case after.Error != nil && after.Error != before.Error:
		return []Told{{Warning: true, Reason: wellknown.ReasonSnapshotCreationFailed, Message: messageOf(after.Error)}}
	case *after.ReadyToUse && !wasReady:
		return []Told{{Reason: wellknown.ReasonSnapshotReady, Message: fmt.Sprintf("Snapshot %s is ready to use.", name)}}
	case after.CreationTime != nil && before.CreationTime == nil:
		return []Told{{Reason: wellknown.ReasonSnapshotCreated,
			Message: fmt.Sprintf("Snapshot %s was successfully created by the CSI driver.", name)}}
	case before.BoundVolumeSnapshotContentName == nil && after.Error == nil && isTakenNow(s):
		return []Told{{Reason: wellknown.ReasonCreatingSnapshot,
			Message: fmt.Sprintf("Waiting for a snapshot %s to be created by the CSI driver.", name)}}
	default:
		return nil
	}
}

func isTakenNow(s *snapv1.VolumeSnapshot) bool { return s.Spec.Source.PersistentVolumeClaimName != nil }

func messageOf(e *snapv1.VolumeSnapshotError) string {
	if e == nil || e.Message == nil {
		return ""
	}
	return *e.Message
}
