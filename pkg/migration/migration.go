// SPDX-License-Identifier: Apache-2.0

// Package migration owns the volumes of storage that Kubernetes once spoke to itself and that a CSI driver
// now serves: it translates their classes and volumes between the two forms.
//
// It must not know what is done with either form, and holds nothing: the tables are those of Kubernetes'
// own translation library, which the rest of the cluster uses as well.
//
// In the walks it stands behind provision, which decides on the CSI form only; the rooms hand it over.
package migration

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
)

// Translator translates for one driver.
type Translator struct {
	table  translation.CSITranslator
	inTree string
}

// For gives the translator of a driver; ok is false for one that replaces nothing.
func For(driver string) (t *Translator, ok bool) {
	table := translation.New()
	inTree, err := table.GetInTreeNameFromCSIName(driver)
	if err != nil {
		return nil, false
	}
	return &Translator{table: table, inTree: inTree}, true
}

// InTree is the name of what the driver replaces.
func (t *Translator) InTree() string { return t.inTree }

// ToCSIClass gives the class as the driver understands it. The argument stays as it is.
func (t *Translator) ToCSIClass(class *storagev1.StorageClass) (*storagev1.StorageClass, error) {
	// What the library has to log is in its errors too.
	return t.table.TranslateInTreeStorageClassToCSI(klog.Logger{}, t.inTree, class)
}

// IsInTree tells whether a volume has the form from before the migration.
func (t *Translator) IsInTree(volume *corev1.PersistentVolume) bool {
	name, err := t.table.GetInTreePluginNameFromSpec(volume, nil)
	return err == nil && name == t.inTree
}

// ToCSI gives a volume in the form of the driver. The argument stays as it is.
func (t *Translator) ToCSI(volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return t.table.TranslateInTreePVToCSI(klog.Logger{}, volume)
}

// ToInTree gives a volume in the form from before the migration. The argument stays as it is.
func (t *Translator) ToInTree(volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return t.table.TranslateCSIPVToInTree(volume)
}
