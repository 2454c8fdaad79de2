// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// checkSnapshot goes from the snapshot to its content to the driver's handle. The order of the checks
// decides which error users see.
func checkSnapshot(in ClaimInput, source *Source) (*csi.VolumeContentSource, error) {
	state, name := in.Source, source.Name
	if state.SnapshotErr != nil {
		return nil, advise(fmt.Errorf("error getting snapshot %s from api server: %w", name, state.SnapshotErr),
			"see that VolumeSnapshot %s/%s exists and may be read; the claim goes on by itself then", source.Namespace, name)
	}
	snapshot := state.Snapshot
	switch {
	case snapshot == nil:
		return nil, fmt.Errorf("error getting snapshot %s from api server: not read", name)
	case isLeaving(snapshot, wellknown.FinalizerSnapshotAsSource, in.Claim):
		return nil, advise(fmt.Errorf("snapshot %s is being deleted", name), newClaim+"is restored from another snapshot")
	case snapshot.Status == nil || snapshot.Status.BoundVolumeSnapshotContentName == nil:
		return nil, advise(pending{fmt.Errorf("snapshot %s not bound", name)}, onceReady, name)
	}
	bound := *snapshot.Status.BoundVolumeSnapshotContentName
	content := state.Content
	if content == nil {
		err := fmt.Errorf("error getting snapshotcontent %s for snapshot %s", bound, name)
		if state.ContentErr != nil {
			err = fmt.Errorf("%w: %w", err, state.ContentErr)
		}
		return nil, advise(err, "see that VolumeSnapshotContent %s exists and may be read; without it the snapshot holds no data", bound)
	}
	handle, err := readHandle(in, snapshot, content)
	if err != nil {
		return nil, err
	}
	if err := checkRestoreSize(in, snapshot); err != nil {
		return nil, err
	}
	if err := checkMode(in, content); err != nil {
		return nil, err
	}
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: handle},
	}}, nil
}

// onceReady is what there is to say about a snapshot that is on its way.
const onceReady = "the claim goes on by itself when VolumeSnapshot %s is ready"

func readHandle(in ClaimInput, snapshot *snapv1.VolumeSnapshot, content *snapv1.VolumeSnapshotContent) (string, error) {
	ref := content.Spec.VolumeSnapshotRef
	switch {
	case ref.UID != snapshot.UID || ref.Namespace != snapshot.Namespace || ref.Name != snapshot.Name:
		return "", advise(fmt.Errorf("snapshotcontent %s for snapshot %s is bound to a different snapshot", content.Name, snapshot.Name),
			"its volumeSnapshotRef is %s/%s with UID %q, and that of the snapshot is %q; take another snapshot, or correct volumeSnapshotRef", ref.Namespace, ref.Name, ref.UID, snapshot.UID)
	case content.Spec.Driver != in.Driver:
		return "", advise(fmt.Errorf("snapshotcontent %s for snapshot %s is not handled by CSI driver of StorageClass %s", content.Name, snapshot.Name, in.Class.Name),
			"it is of driver %q and the class is of %q: %snames a class of the snapshot's driver", content.Spec.Driver, in.Driver, newClaim)
	case snapshot.Status.ReadyToUse == nil || !*snapshot.Status.ReadyToUse:
		return "", advise(pending{fmt.Errorf("snapshot %s is not Ready", snapshot.Name)}, onceReady, snapshot.Name)
	case content.Status == nil || content.Status.SnapshotHandle == nil:
		return "", advise(pending{fmt.Errorf("snapshot handle %s is not available", snapshot.Name)}, onceReady, snapshot.Name)
	case *content.Status.SnapshotHandle == "":
		// A driver may take no name for no source, and make an empty volume.
		return "", advise(fmt.Errorf("snapshotcontent %s for snapshot %s has an empty snapshotHandle in its status", content.Name, snapshot.Name),
			"write into status.snapshotHandle of VolumeSnapshotContent %s what the snapshot is called at the driver, and the claim goes on by itself; or %sis restored from another snapshot", content.Name, newClaim)
	}
	return *content.Status.SnapshotHandle, nil
}

func checkRestoreSize(in ClaimInput, snapshot *snapv1.VolumeSnapshot) error {
	if snapshot.Status.RestoreSize == nil {
		return nil
	}
	size, ok := requested(in.Claim)
	least := restoreSize(in.Source)
	if size < least && mayGrow(in, least) {
		return nil
	}
	if !ok {
		return advise(fmt.Errorf("error getting capacity for PVC %s when creating snapshot %s", in.Claim.Name, snapshot.Name),
			"%s", enlarge(in, least))
	}
	if size < least {
		return advise(fmt.Errorf("requested volume size %d is less than the size %d for the source snapshot %s", size, least, snapshot.Name), "%s", enlarge(in, least))
	}
	return nil
}

// checkMode keeps a volume's bytes from being read as something else than they were written as, unless
// somebody with rights on the content allowed it (KEP-3141).
func checkMode(in ClaimInput, content *snapv1.VolumeSnapshotContent) error {
	from, to := content.Spec.SourceVolumeMode, in.Claim.Spec.VolumeMode
	if !in.PreventModeConversion || from == nil || to == nil || *from == *to {
		return nil
	}
	const key = wellknown.AnnAllowVolumeModeChange
	why := ""
	value, ok := content.Annotations[key]
	switch allowed, err := strconv.ParseBool(value); {
	case !ok:
		why = fmt.Sprintf("%s annotation is not present on snapshotcontent %s", key, content.Name)
	case err != nil:
		why = fmt.Sprintf("failed to convert %s annotation value to boolean with error: %v", key, err)
	case !allowed:
		why = fmt.Sprintf("%s is set to false on snapshotcontent %s", key, content.Name)
	default:
		return nil
	}
	return blameMode(in, content.Name, fmt.Errorf("requested volume %s/%s modifies the mode of the source volume but does not have permission to do so. %s", in.Claim.Namespace, in.Claim.Name, why))
}

func hasFinalizer(finalizers []string, name string) bool { return slices.Contains(finalizers, name) }
