// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/params"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// VolumeInput is all that the next step of a PersistentVolume depends on.
type VolumeInput struct {
	Config
	Now time.Time
	// Volume is nil when it is gone.
	Volume *corev1.PersistentVolume
	// Since is when it was first seen that something is to be done, for a process that serves one node.
	Since time.Time
	// Live tells that Volume was read from the API server just now.
	Live bool
	// Deleted tells that the driver has removed this volume already.
	Deleted bool
	// Attachments are those of this volume.
	Attachments []*storagev1.VolumeAttachment
	// Class is the class of the volume, nil when it does not exist.
	Class *storagev1.StorageClass
	// SecretMissing is since when the secret for the deletion is known not to exist; zero while it is
	// not.
	SecretMissing time.Time
	// Twins are the other PersistentVolumes of the same volume, as read with it.
	Twins []Twin
	// Owner is a claim that is not going and names this volume as its own, as read with it.
	Owner *corev1.PersistentVolumeClaim
}

// Twin is another PersistentVolume of the same volume.
type Twin struct {
	*corev1.PersistentVolume
	// Owner is a claim that is not going and names it as its own.
	Owner *corev1.PersistentVolumeClaim
}

// SecretPatience is how long a deletion waits for a secret that does not exist before one try is made
// without it. Sending no secret at once would make the driver fail, or delete with the wrong rights.
const SecretPatience = 2 * time.Minute

// NextVolumeStep says what to do about a PersistentVolume now.
func NextVolumeStep(in VolumeInput) VolumeStep {
	step := nextVolume(in)
	if _, idle := step.(Ignore); idle {
		return step
	}
	return in.localStep(step)
}

func nextVolume(in VolumeInput) VolumeStep {
	volume := in.Volume
	switch {
	case volume != nil && in.isMislaid(volume):
		return Reject{Err: in.mislaid(volume)}
	case volume == nil || !in.IsVolumeOurs(volume):
		return Ignore{"the volume is gone or not ours"}
	}
	if in.Deleted {
		return in.afterDeletion()
	}
	if step := maintain(volume); step != nil {
		return step
	}
	switch {
	case isStranded(volume):
		return stranded(volume)
	case volume.Status.Phase != corev1.VolumeReleased:
		return Ignore{"the volume is not released"}
	case isUnclaimed(volume):
		return Ignore{"the volume was taken off its claim, and its phase is older than that: kube-controller-manager will make it Available"}
	case volume.DeletionTimestamp != nil && !isProtected(volume):
		return Ignore{"the volume was handled before"}
	default:
		return nextDeletion(in)
	}
}

// maintain keeps our finalizer on volumes that are to be deleted and off all others, and stops the walk
// for those that are to be kept.
func maintain(volume *corev1.PersistentVolume) VolumeStep {
	policy := volume.Spec.PersistentVolumeReclaimPolicy
	switch {
	case policy != corev1.PersistentVolumeReclaimDelete && isProtected(volume) && isExplicit(policy):
		return Unprotect{}
	case policy != corev1.PersistentVolumeReclaimDelete:
		return Ignore{"the volume is to be kept"}
	case volume.Status.Phase == corev1.VolumeBound && volume.DeletionTimestamp == nil && !isProtected(volume):
		return Protect{}
	default:
		return nil
	}
}

func isProtected(volume *corev1.PersistentVolume) bool {
	return hasFinalizer(volume.Finalizers, wellknown.FinalizerVolume)
}

// isExplicit tells the policies under which a volume is kept from one that is not filled in yet.
func isExplicit(policy corev1.PersistentVolumeReclaimPolicy) bool {
	return policy == corev1.PersistentVolumeReclaimRetain || policy == corev1.PersistentVolumeReclaimRecycle
}

func nextDeletion(in VolumeInput) VolumeStep {
	volume, err := in.AsCSI(in.Volume)
	if err == nil && volume.Spec.CSI == nil {
		err = advise(errors.New("invalid CSI PV"), "PersistentVolume %s says that driver %q has made it and has no spec.csi: delete it by hand, and at the driver what belongs to it", in.Volume.Name, in.Driver)
	}
	if err != nil {
		return Reject{Err: err}
	}
	if volume.Spec.CSI.Driver != in.Driver {
		return Reject{Err: in.notTheDrivers(volume)}
	}
	if err := checkController(in.Config); err != nil {
		return Reject{Err: advise(err, "driver %q has to be able to; until then the volume stays", in.Driver)}
	}
	secret, err := in.deletionSecret()
	if err != nil {
		return Reject{Err: err}
	}
	if err := in.stillNeeded(volume.Spec.CSI.VolumeHandle); err != nil {
		return Reject{Err: err}
	}
	if in.Capabilities.Has(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME) && len(in.Attachments) > 0 {
		return WaitDetached{Node: in.Attachments[0].Spec.NodeName, Volume: in.attached()}
	}
	if !in.Live {
		// A cache may not know yet that somebody has taken the volume back.
		return Confirm{}
	}
	return Delete{
		Handle: volume.Spec.CSI.VolumeHandle, Secret: secret,
		MayLackSecret: !in.SecretMissing.IsZero() && in.Now.Sub(in.SecretMissing) >= SecretPatience,
	}
}

// attached names the PersistentVolume that the node still has: it may be another one of the same volume.
func (in VolumeInput) attached() string {
	if name := in.Attachments[0].Spec.Source.PersistentVolumeName; name != nil {
		return *name
	}
	return in.Volume.Name
}

// StillAttached is what users are told while a deletion waits for a node to let go.
func StillAttached(volume, node string) string {
	return fmt.Sprintf("persistentvolume %s is still attached to node %s", volume, node)
}

// UnknownToDriver is what users are told when a deletion ends because the driver does not know the volume. A driver may say so of a
// volume that is gone, and of something else that it lacks.
func UnknownToDriver(handle string, err error) error {
	return advise(fmt.Errorf("the driver does not know volume %q, and has deleted nothing: %w", handle, err),
		"look whether its storage still has that volume, and delete it there: nobody asks for it again")
}

// VolumeClass is the class of a volume whose secrets are not on record.
func VolumeClass(volume *corev1.PersistentVolume) string {
	if name, ok := volume.Annotations[wellknown.AnnBetaStorageClass]; ok {
		return name
	}
	return volume.Spec.StorageClassName
}

// deletionSecret is DeletionSecret with the class as the driver understands it.
func (in VolumeInput) deletionSecret() (*corev1.SecretReference, error) {
	class := in.Class
	if class != nil && in.isReplaced(class.Provisioner) && !isSecretOnRecord(in.Volume) {
		var err error
		if class, err = in.Migration.ToCSIClass(class); err != nil {
			return nil, fmt.Errorf("failed to translate storage class: %w", err)
		}
	}
	return DeletionSecret(in.Volume, class)
}

func isSecretOnRecord(volume *corev1.PersistentVolume) bool {
	_, hasName := volume.Annotations[wellknown.AnnDeletionSecretName]
	_, hasNamespace := volume.Annotations[wellknown.AnnDeletionSecretNamespace]
	return hasName && hasNamespace
}

// DeletionSecret is the secret for the deletion of a volume. What was recorded when the volume was made
// wins over what the class says by now; only volumes without a record ask their class.
func DeletionSecret(volume *corev1.PersistentVolume, class *storagev1.StorageClass) (*corev1.SecretReference, error) {
	if isSecretOnRecord(volume) {
		name, namespace := volume.Annotations[wellknown.AnnDeletionSecretName], volume.Annotations[wellknown.AnnDeletionSecretNamespace]
		if name == "" || namespace == "" {
			return nil, nil
		}
		return &corev1.SecretReference{Name: name, Namespace: namespace}, nil
	}
	claim := volume.Spec.ClaimRef
	if class == nil || claim == nil {
		return nil, nil
	}
	// The claim is gone, and with it its annotations: a template that needs them cannot be resolved.
	tokens := params.VolumeTokens(volume.Name, params.Claim{Namespace: claim.Namespace, Name: claim.Name})
	ref, err := params.ResolveSecret(params.Provisioner, class.Parameters, tokens)
	if err != nil {
		return nil, advise(fmt.Errorf("failed to get secretreference for volume %s: %w", volume.Name, err),
			"name the secret in the annotations %s and %s of the PersistentVolume, empty for none", wellknown.AnnDeletionSecretName, wellknown.AnnDeletionSecretNamespace)
	}
	return ref, nil
}
