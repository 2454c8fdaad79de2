// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Translator turns classes and volumes of a plugin that was part of Kubernetes into those of the driver
// that replaces it, and back. Arguments stay as they are.
type Translator interface {
	// InTree is the name of the plugin.
	InTree() string
	ToCSIClass(class *storagev1.StorageClass) (*storagev1.StorageClass, error)
	// IsInTree tells whether a volume is of the plugin.
	IsInTree(volume *corev1.PersistentVolume) bool
	ToCSI(volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error)
	ToInTree(volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error)
}

// isReplaced tells whether a name is that of the plugin which the driver replaces.
func (c Config) isReplaced(name string) bool {
	return c.Migration != nil && name == c.Migration.InTree()
}

// isKnown tells whether a name of a provisioner stands for this driver.
func (c Config) isKnown(name string) bool { return name == c.Driver || c.isReplaced(name) }

// IsClaimOurs tells whether a claim asks this driver for its volume. The old key counts only when the
// new one is absent. One that asks the plugin which the driver replaces is ours only once the cluster
// says so on the claim: before, the plugin itself may still be at work.
func (c Config) IsClaimOurs(claim *corev1.PersistentVolumeClaim) bool {
	asked, ok := claim.Annotations[wellknown.AnnStorageProvisioner]
	if !ok {
		asked = claim.Annotations[wellknown.AnnBetaStorageProvisioner]
	}
	return asked == c.Driver || c.isReplaced(asked) && claim.Annotations[wellknown.AnnMigratedTo] == c.Driver
}

// IsVolumeOurs tells whether this driver manages a PersistentVolume: one that it made, or a static one
// of its kind. Users rely on static volumes being managed alike. A volume of the plugin that the driver
// replaces is ours once the cluster says so.
func (c Config) IsVolumeOurs(volume *corev1.PersistentVolume) bool {
	by, made := volume.Annotations[wellknown.AnnProvisionedBy]
	migrated := volume.Annotations[wellknown.AnnMigratedTo] == c.Driver
	switch {
	case made:
		return by == c.Driver || migrated
	case volume.Spec.CSI != nil:
		return volume.Spec.CSI.Driver == c.Driver
	default:
		return migrated
	}
}

// AsCSI gives a volume in the form of the driver; a volume that has it already comes back as it is.
func (c Config) AsCSI(volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if volume.Spec.CSI != nil || c.Migration == nil || !c.Migration.IsInTree(volume) {
		return volume, nil
	}
	translated, err := c.Migration.ToCSI(volume)
	if err != nil {
		return nil, fmt.Errorf("translating volume %s: %w", volume.Name, err)
	}
	return translated, nil
}

// InTreeForm is what is left of a handle in the form from before the migration; nil where there is none.
func (c Config) InTreeForm(handle string) *corev1.PersistentVolume {
	if c.Migration == nil {
		return nil
	}
	probe := &corev1.PersistentVolume{}
	probe.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: c.Driver, VolumeHandle: handle}
	form, err := c.Migration.ToInTree(probe)
	if err != nil {
		return nil // what cannot be told in that form is not stored in it
	}
	return form
}

// IsOfHandle tells whether a PersistentVolume, in either form, is of the driver's volume with a handle. One that was stored in the form
// from before the migration is compared by what that form keeps of a handle.
func (c Config) IsOfHandle(volume *corev1.PersistentVolume, handle string) (bool, error) {
	translated, err := c.AsCSI(volume)
	if err != nil || translated.Spec.CSI == nil || translated.Spec.CSI.Driver != c.Driver {
		return false, err
	}
	if own := translated.Spec.CSI.VolumeHandle; own == handle || !c.IsMigrated(volume) {
		return own == handle, nil
	}
	stored, asked := c.reduced(translated.Spec.CSI.VolumeHandle), c.reduced(handle)
	return stored != "" && stored == asked, nil
}

// reduced is a handle that has gone through the form from before the migration, empty when nothing comes back.
func (c Config) reduced(handle string) string {
	form := c.InTreeForm(handle)
	if form == nil {
		return ""
	}
	back, err := c.Migration.ToCSI(form)
	if err != nil {
		return ""
	}
	return back.Spec.CSI.VolumeHandle
}

// isMislaid tells that a volume which is to go has our finalizer and our driver in its spec, and is another one's by an annotation, so that
// nobody sees to it.
func (c Config) isMislaid(volume *corev1.PersistentVolume) bool {
	source := volume.Spec.CSI
	isGoing := volume.DeletionTimestamp != nil || volume.Status.Phase == corev1.VolumeReleased
	return isGoing && isProtected(volume) && source != nil && source.Driver == c.Driver && !c.IsVolumeOurs(volume) &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

// mislaid says so.
func (c Config) mislaid(volume *corev1.PersistentVolume) error {
	by := volume.Annotations[wellknown.AnnProvisionedBy]
	return fault.Terminal(advise(fmt.Errorf("PersistentVolume %s has spec.csi.driver %q, and its annotation %s says %q, so that nothing is deleted", volume.Name, c.Driver, wellknown.AnnProvisionedBy, by),
		"set that annotation to %s, and the provisioner of that driver deletes the volume; or set persistentVolumeReclaimPolicy Retain, take the finalizer %s off, and the PersistentVolume can be deleted while the data stays", c.Driver, wellknown.FinalizerVolume))
}

// notTheDrivers is why nothing is deleted of a volume that is ours by an annotation, and has the handle of another driver. To
// this one the handle may be another volume.
func (c Config) notTheDrivers(volume *corev1.PersistentVolume) error {
	annotation := wellknown.AnnProvisionedBy
	if volume.Annotations[annotation] != c.Driver {
		annotation = wellknown.AnnMigratedTo
	}
	of := volume.Spec.CSI.Driver
	return fault.Terminal(advise(fmt.Errorf("PersistentVolume %s has spec.csi.driver %q, and its annotation %s says %q, so that nothing is deleted", volume.Name, of, annotation, c.Driver),
		"set that annotation to %s, and the provisioner of that driver deletes the volume; or set persistentVolumeReclaimPolicy Retain, and the PersistentVolume can be deleted while the data stays", of))
}

// Holds tells whether a volume is the one that the driver has made under a handle for an attempt. In the
// form from before the migration a handle may have lost what it once said, so that both ways are compared;
// a volume of the plugin that cannot be translated may be that one, so its error goes on. What is apart from the node that is served is
// another volume, whatever its handle: drivers of single nodes do not know of each other's.
func (c Config) Holds(volume *corev1.PersistentVolume, attempt *Attempt, handle string) (bool, error) {
	if source := volume.Spec.CSI; source != nil || !c.IsMigrated(volume) {
		return source != nil && source.Driver == c.Driver && source.VolumeHandle == handle && !c.isApart(volume), nil
	}
	if volume.Name == attempt.Name() && belongsTo(volume, attempt.Ref.UID) {
		// The driver knows a volume by this name, and made no second one for it.
		return true, nil
	}
	translated, err := c.AsCSI(volume)
	if err != nil || translated.Spec.CSI.VolumeHandle == handle {
		return err == nil, err
	}
	probe := attempt.Volume.DeepCopy()
	probe.Spec.CSI.VolumeHandle = handle
	back, err := c.Migration.ToInTree(probe)
	if err != nil {
		// What cannot be told in that form is not stored in it.
		return false, nil //nolint:nilerr // the error is the answer
	}
	return equality.Semantic.DeepEqual(back.Spec.PersistentVolumeSource, volume.Spec.PersistentVolumeSource), nil
}

// IsMigrated tells whether a volume is stored in the form from before the migration.
func (c Config) IsMigrated(volume *corev1.PersistentVolume) bool {
	return c.Migration != nil && c.Migration.IsInTree(volume)
}

// translateClass puts the class as the driver understands it into the input, and keeps the one that users
// have written beside it.
func translateClass(in ClaimInput) (ClaimInput, error) {
	in.written = in.Class
	if !in.isReplaced(in.Class.Provisioner) {
		return in, nil
	}
	translated, err := in.Migration.ToCSIClass(in.Class)
	if err != nil {
		return in, fmt.Errorf("failed to translate storage class: %w", err)
	}
	in.Class = translated
	return in, nil
}

// storedForm is the PersistentVolume as it is written: in the form from before the migration when its class
// has that form, so that a cluster that goes back a version still understands it.
func storedForm(attempt *Attempt, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if !attempt.InTree {
		return volume, nil
	}
	if attempt.Migration == nil {
		return nil, errors.New("translating the volume back: nothing is known of the plugin that its class names")
	}
	back, err := attempt.Migration.ToInTree(volume)
	if err != nil {
		return nil, fmt.Errorf("translating the volume back: %w", err)
	}
	return back, nil
}
