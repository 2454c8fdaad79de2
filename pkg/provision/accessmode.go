// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/accessmodes"
	corev1 "k8s.io/api/core/v1"
)

// capabilitiesOf asks for one capability per access mode of the claim, in its order. The modes are
// mapped one by one: which combinations a driver can do is the driver's to say.
func capabilitiesOf(in ClaimInput, fsType string) ([]*csi.VolumeCapability, error) {
	single := in.Capabilities.Has(csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)
	var all []*csi.VolumeCapability
	for _, mode := range in.Claim.Spec.AccessModes {
		mapped, err := accessmodes.ToCSIAccessMode([]corev1.PersistentVolumeAccessMode{mode}, single)
		if err != nil {
			return nil, err
		}
		capability := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: mapped}}
		if in.isBlock() {
			capability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		} else {
			capability.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{
				FsType: fsType, MountFlags: in.Class.MountOptions,
			}}
		}
		all = append(all, capability)
	}
	return all, nil
}

// isReadOnly tells that the only capability asked for is reading from many nodes.
func isReadOnly(all []*csi.VolumeCapability) bool {
	return len(all) == 1 && all[0].GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
}
