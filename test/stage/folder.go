// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
)

// Folder is a volume as a pod sees it. All access to data goes through it.
type Folder interface {
	// Write puts a file into the volume.
	Write(name, content string) error
	// Read returns a file of the volume; one that is not there is an error that os.ErrNotExist is in.
	Read(name string) (string, error)
	// Destroy removes a file of the volume.
	Destroy(name string) error
}

// published is the folder of a simulated node's pod.
type published string

func (f published) Write(name, content string) error {
	if err := os.WriteFile(filepath.Join(string(f), name), []byte(content), 0o644); err != nil {
		return fmt.Errorf("writing into the volume: %w", err)
	}
	return nil
}

func (f published) Read(name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(string(f), name))
	if err != nil {
		return "", fmt.Errorf("reading from the volume: %w", err)
	}
	return string(content), nil
}

func (f published) Destroy(name string) error {
	if err := os.Remove(filepath.Join(string(f), name)); err != nil {
		return fmt.Errorf("destroying a file of the volume: %w", err)
	}
	return nil
}

// accessModes are the CSI modes that a kubelet uses with drivers that do not tell single writers apart; those that do
// accept them too.
var accessModes = map[corev1.PersistentVolumeAccessMode]csi.VolumeCapability_AccessMode_Mode{
	corev1.ReadWriteOnce:    csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
	corev1.ReadWriteOncePod: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
	corev1.ReadOnlyMany:     csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
	corev1.ReadWriteMany:    csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
}

func capabilityOf(pv *corev1.PersistentVolume) *csi.VolumeCapability {
	capability := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{}}
	if len(pv.Spec.AccessModes) > 0 {
		capability.AccessMode.Mode = accessModes[pv.Spec.AccessModes[0]]
	}
	if mode := pv.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		capability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		return capability
	}
	capability.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{
		FsType: pv.Spec.CSI.FSType, MountFlags: pv.Spec.MountOptions,
	}}
	return capability
}
