// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// maxMade bounds what the driver says of a volume, in bytes of texts. etcd takes 1.5 MiB for a whole object, and the API
// server answers for it with an error of its own that looks like a passing one: a larger PersistentVolume would be tried for
// ever, and nobody would be told.
const maxMade = 1 << 20

// maxHandle is far beyond the 128 bytes of the CSI spec, which drivers in the field do not keep.
const maxHandle = 16 << 10

// checkSize refuses what could never be stored. The volume is removed then, as one that the API server refuses.
func checkSize(made *csi.Volume) error {
	if n := len(made.GetVolumeId()); n > maxHandle {
		return advise(fmt.Errorf("created volume has a volume_id of %d bytes, and %d are the most that is stored", n, maxHandle), unstorableAdvice)
	}
	size := 0
	for key, value := range made.GetVolumeContext() {
		size += len(key) + len(value)
	}
	for _, place := range made.GetAccessibleTopology() {
		for key, value := range place.GetSegments() {
			size += len(key) + len(value)
		}
	}
	if size > maxMade {
		return advise(fmt.Errorf("created volume has a volume_context and topology of %d bytes, and %d are the most that is stored", size, maxMade), unstorableAdvice)
	}
	return nil
}
