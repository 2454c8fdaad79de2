// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// errNoClaim is the text that users of such controllers search for.
var errNoClaim = errors.New("cannot get claim from snapshot")

// defaultClass chooses the class of a snapshot that names none: the one that is marked as default and is of
// the driver of the claim's volume.
func defaultClass(in SnapshotInput, driver string) (*snapv1.VolumeSnapshotClass, error) {
	var found []*snapv1.VolumeSnapshotClass
	var names []string
	for _, class := range in.Classes {
		if class.Annotations[wellknown.AnnIsDefaultSnapshotClass] == "true" && class.Driver == driver {
			found, names = append(found, class), append(names, class.Name)
		}
	}
	switch len(found) {
	case 0:
		return nil, advise(errors.New("cannot find default snapshot class"),
			"claim %s/%s is of driver %s: annotate a VolumeSnapshotClass of that driver with %s=true, or name a class %s",
			in.Claim.Namespace, in.Claim.Name, driver, wellknown.AnnIsDefaultSnapshotClass, newSnapshot)
	case 1:
		return found[0], nil
	default:
		slices.Sort(names)
		return nil, advise(fmt.Errorf("%d default snapshot classes were found: %s", len(found), strings.Join(names, ", ")),
			"they are all of driver %s: leave annotation %s on one of them, or name a class %s", driver, wellknown.AnnIsDefaultSnapshotClass, newSnapshot)
	}
}

// checkClaim tells whether the claim has a volume that could be looked at.
func checkClaim(in SnapshotInput) error {
	switch claim := in.Claim; {
	case claim == nil:
		return noClaim(in)
	case claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "":
		err := advise(fmt.Errorf("the PVC %s is not yet bound to a PV, will not attempt to take a snapshot", claim.Name), "%s", adviseUnbound(claim))
		if claim.Status.Phase == corev1.ClaimLost {
			return err
		}
		return fault.Waiting(err)
	default:
		return nil
	}
}

// checkVolume tells whether the volume that was read is the claim's.
func checkVolume(in SnapshotInput) error {
	claim, volume := in.Claim, in.Volume
	if volume == nil {
		return advise(fmt.Errorf("failed to retrieve PV %s from the API server: %q", claim.Spec.VolumeName,
			fmt.Sprintf("persistentvolumes %q not found", claim.Spec.VolumeName)),
			"claim %s/%s names a PersistentVolume that does not exist, so that there is nothing to take a snapshot of: name another claim %s", claim.Namespace, claim.Name, newSnapshot)
	}
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.Name != claim.Name || ref.Namespace != claim.Namespace || ref.UID != "" && ref.UID != claim.UID {
		return advise(errors.New("claim in dataSource not bound or invalid"),
			"PersistentVolume %s does not name claim %s/%s in its spec.claimRef: correct that, or name another claim %s", volume.Name, claim.Namespace, claim.Name, newSnapshot)
	}
	return nil
}

// checkDriver tells whether the volume is of a CSI driver.
func checkDriver(volume *corev1.PersistentVolume) error {
	if volume.Spec.CSI == nil {
		return advise(fmt.Errorf("cannot find CSI PersistentVolumeSource for volume %s", volume.Name),
			"only volumes of CSI drivers can be snapshotted: name a claim of such a volume %s", newSnapshot)
	}
	return nil
}
