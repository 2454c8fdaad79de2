// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Room is how much room the driver says there is.
type Room struct {
	Available int64
	// Maximum is that of one volume; nil when the driver does not say.
	Maximum *int64
}

// RoomOf reads an answer. The API server refuses negative sizes: less than nothing is nothing, and a
// maximum that cannot be is not said.
func RoomOf(answer *csi.GetCapacityResponse) Room {
	room := Room{Available: max(answer.GetAvailableCapacity(), 0)}
	if maximum := answer.GetMaximumVolumeSize(); maximum != nil && maximum.GetValue() >= 0 {
		value := maximum.GetValue()
		room.Maximum = &value
	}
	return room
}

func (r *Room) capacity() *resource.Quantity {
	return resource.NewQuantity(r.Available, resource.BinarySI)
}

func (r *Room) maximum() *resource.Quantity {
	if r.Maximum == nil {
		return nil
	}
	return resource.NewQuantity(*r.Maximum, resource.BinarySI)
}

// isIn tells whether an object says the same. Quantities are compared by value, not by how they are written.
func (r *Room) isIn(object *storagev1.CSIStorageCapacity) bool {
	return isSame(object.Capacity, r.capacity()) && isSame(object.MaximumVolumeSize, r.maximum())
}

func isSame(a, b *resource.Quantity) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Cmp(*b) == 0
}

// Parameters are those of a class that the driver may see. Keys with the reserved prefix are instructions
// to the sidecars (CSI spec, "reserved parameters"), the misspelt ones too: what CreateVolume would be
// refused for is told at the claim, and not by silence about the room.
func Parameters(class *storagev1.StorageClass) map[string]string {
	parameters := maps.Clone(class.Parameters)
	maps.DeleteFunc(parameters, func(key, _ string) bool { return strings.HasPrefix(key, wellknown.ReservedParameterPrefix) })
	return parameters
}

// GroupOf names all classes with the same parameters for the driver: one answer of it serves them all.
func GroupOf(parameters map[string]string) string {
	sum := fnv.New64a()
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		// Neither writing to a hash nor quoting can fail; the quotes keep keys and values apart.
		_, _ = fmt.Fprintf(sum, "%q=%q,", key, parameters[key])
	}
	return fmt.Sprintf("%016x", sum.Sum64())
}

// Question is what the driver is asked for a segment. A driver without topology must not be told of
// segments (CSI spec, GetCapacity), and the empty one says nothing.
func Question(parameters map[string]string, segment topology.Segment) *csi.GetCapacityRequest {
	request := &csi.GetCapacityRequest{Parameters: parameters}
	if len(segment) > 0 {
		request.AccessibleTopology = &csi.Topology{Segments: segment.Labels()}
	}
	return request
}
