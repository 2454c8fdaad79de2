// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// maxMade bounds what the driver says of a volume, in bytes as they are stored. etcd takes 1.5 MiB for a whole object; what is left
// is for those who write to the PersistentVolume later, and whom nobody would tell that it has become too large.
const maxMade = 1 << 20

// Each key of volume_context is stored a second time, in metadata.managedFields, and each segment in a term of the node affinity.
const (
	besideKey     = len(`"f:":{},`)
	besideSegment = 32
)

// maxHandle is far beyond the 128 bytes of the CSI spec, which drivers in the field do not keep.
const maxHandle = 16 << 10

// checkSize refuses what could never be stored. The volume is removed then, as one that the API server refuses.
func checkSize(made *csi.Volume) error {
	if n := len(made.GetVolumeId()); n > maxHandle {
		return advise(fmt.Errorf("created volume has a volume_id of %d bytes, and %d are the most that is stored", n, maxHandle), unstorableAdvice)
	}
	context, topology := storedSizes(made)
	if size := context + topology; size > maxMade {
		return advise(fmt.Errorf("created volume has a volume_context and topology of %d bytes as they are stored, and %d are the most that is", size, maxMade), unstorableAdvice)
	}
	return nil
}

// storedSizes is about how many bytes a PersistentVolume takes for what the driver says of the volume.
func storedSizes(made *csi.Volume) (context, topology int) {
	for key, value := range made.GetVolumeContext() {
		context += 2*len(key) + besideKey + len(value)
	}
	for _, place := range made.GetAccessibleTopology() {
		for key, value := range place.GetSegments() {
			topology += len(key) + len(value) + besideSegment
		}
	}
	return context, topology
}

// Oversized is Unstorable for a PersistentVolume that is too large for the API server or its store, which say no more than that.
func Oversized(attempt *Attempt, err error) Undo {
	context, topology := storedSizes(attempt.Made)
	u := Unstorable(attempt, err)
	u.Err = advise(err, "the volume_context that the driver answered with takes %d bytes, its accessible_topology %d: the driver has to say less; the volume is made anew then", context, topology)
	return u
}
