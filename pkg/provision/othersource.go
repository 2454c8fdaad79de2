// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
)

// OtherSource says that the driver names another source of a finished volume than it was asked for; it is empty when that is not so. The
// volume is kept: a driver may have two names for one source.
func OtherSource(attempt *Attempt) string {
	asked, said := attempt.Request.GetVolumeContentSource(), attempt.Made.GetContentSource()
	if asked == nil || said == nil || proto.Equal(asked, said) {
		return ""
	}
	return fmt.Sprintf("the driver was asked to make volume %s from %s, and says that it has made it from %s: unless the driver has two names for that, compare the data before the volume is used (told once for the volumes of StorageClass %q)",
		attempt.Name(), nameSource(asked), nameSource(said), attempt.Volume.Spec.StorageClassName)
}

func nameSource(source *csi.VolumeContentSource) string {
	if snapshot := source.GetSnapshot(); snapshot != nil {
		return fmt.Sprintf("snapshot %.128q", snapshot.GetSnapshotId())
	}
	return fmt.Sprintf("volume %.128q", source.GetVolume().GetVolumeId())
}
