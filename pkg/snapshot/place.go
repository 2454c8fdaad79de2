// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

const (
	// maxPlaces and maxPlaceBytes bound the annotation. A volume that can be reached from more places than
	// that is near to everywhere, and a cut list still names places where the data is.
	maxPlaces     = 64
	maxPlaceBytes = 4 << 10
)

// BuildSourceTopology writes down the places of a volume, sorted, so that the same volume always gives the
// same text. It is empty when the volume is everywhere, or where cannot be said in segments.
func BuildSourceTopology(volume *corev1.PersistentVolume) string {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return ""
	}
	var places []topology.Segment
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		// The terms are alternatives: one that cannot be written down takes nothing from the others.
		places = append(places, placesOf(term)...)
	}
	slices.SortFunc(places, topology.Segment.Compare)
	places = slices.CompactFunc(places, func(a, b topology.Segment) bool { return a.Compare(b) == 0 })
	return encodePlaces(places)
}

// encodePlaces drops places from the end until the text is short enough.
func encodePlaces(places []topology.Segment) string {
	for n := min(len(places), maxPlaces); n > 0; n-- {
		list := make([]map[string]string, 0, n)
		for _, place := range places[:n] {
			list = append(list, place.Labels())
		}
		// Maps of strings cannot fail to be encoded, and their keys come out sorted.
		if data, _ := json.Marshal(list); len(data) <= maxPlaceBytes {
			return string(data)
		}
	}
	return ""
}

// placesOf expands one term. One that asks for anything but labels with given values says less than it
// seems without that, so it says nothing here.
func placesOf(term corev1.NodeSelectorTerm) []topology.Segment {
	if len(term.MatchFields) > 0 || len(term.MatchExpressions) == 0 {
		return nil
	}
	combinations := []map[string]string{{}}
	for _, e := range term.MatchExpressions {
		if e.Operator != corev1.NodeSelectorOpIn {
			return nil
		}
		var next []map[string]string
		for _, labels := range combinations {
			for _, value := range e.Values {
				if known, twice := labels[e.Key]; twice && known != value || len(next) == maxPlaces {
					continue
				}
				more := maps.Clone(labels)
				more[e.Key] = value
				next = append(next, more)
			}
		}
		combinations = next
	}
	places := make([]topology.Segment, 0, len(combinations))
	for _, labels := range combinations {
		places = append(places, topology.SegmentOf(labels))
	}
	return places
}
