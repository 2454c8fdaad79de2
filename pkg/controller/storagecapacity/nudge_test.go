// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// at is a volume of class "fast" in these zones; none is everywhere.
func at(zones ...string) *corev1.PersistentVolume {
	volume := kit.Volume("v")
	volume.Spec.StorageClassName = "fast"
	var places []*csi.Topology
	for _, zone := range zones {
		places = append(places, &csi.Topology{Segments: map[string]string{"zone": zone}})
	}
	volume.Spec.NodeAffinity = topology.Affinity(places)
	return volume
}

// TestRefreshesWhatHasChanged (PP-8): asking about all segments of a class after each failure is what a full
// segment of thousands would cost.
func TestRefreshesWhatHasChanged(t *testing.T) {
	askA, askB := "driver GetCapacity zone=a → OK", "driver GetCapacity zone=b → OK"
	several := at("a", "b")
	subset := at("a")
	subset.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions = append(subset.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions,
		corev1.NodeSelectorRequirement{Key: "rack", Operator: corev1.NodeSelectorOpIn, Values: []string{"1"}})
	either := at("a")
	either.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values = []string{"a", "b"}
	elsewhere := at()
	elsewhere.Spec.StorageClassName = "foreign"
	for _, c := range []struct {
		name string
		tell func(c *Controller)
		want []string
	}{
		{"T95 a new volume, all sorts of classes", func(c *Controller) { c.Provisioned(at("a")) }, []string{askA, askA}},
		{"T95 a new volume in two segments", func(c *Controller) { c.Provisioned(several) }, []string{askA, askA, askB, askB}},
		{"T95 a volume in an unknown segment", func(c *Controller) { c.Provisioned(at("z")) }, nil},
		{"T95 a volume in a part of a segment", func(c *Controller) { c.Provisioned(subset) }, nil},
		{"an affinity that is no segment", func(c *Controller) { c.Provisioned(either) }, nil},
		{"T95 a volume that is everywhere", func(c *Controller) { c.Provisioned(at()) }, []string{askA, askB}},
		{"a volume of a class that is not published", func(c *Controller) { c.Provisioned(elsewhere) }, nil},
		{"T95 a volume is deleted", func(c *Controller) { c.Deleted(at("b")) }, []string{askB, askB}},
		{"PP-8 no room on a node", func(c *Controller) { c.Failed("fast", "n2") }, []string{askB}},
		{"T95 no room, and no node was selected", func(c *Controller) { c.Failed("fast", "") }, []string{askA, askB}},
		{"no room on a node that nobody knows", func(c *Controller) { c.Failed("fast", "n9") }, []string{askA, askB}},
		{"no room for a class that is not published", func(c *Controller) { c.Failed("foreign", "n1") }, nil},
		{"T95 told many times", func(c *Controller) {
			for range 100 {
				c.Failed("fast", "n1")
			}
		}, []string{askA}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := world(t, "a", "b")
			h.Put(late("slow", "pool=slow"))
			room := start(h)
			h.Settle()
			h.Clock.Step(2 * time.Second)
			h.Log.Clear()
			c.tell(room)
			h.Settle()
			did(t, h, c.name, c.want...)
		})
	}
}

// TestSegmentsOfSeveralKeys (PW-18): a segment that is named in the order of a map, or of what the driver answers, matches
// what is published only by chance.
func TestSegmentsOfSeveralKeys(t *testing.T) {
	keys := []string{"zone", "rack", "host", "row"}
	labels := map[string]string{"zone": "a", "rack": "2", "host": "n1", "row": "c"}
	h := kit.New(t)
	h.Horizon = 20 * time.Second
	h.Put(late("fast"), kit.Node("n1", labels), kit.CSINode("n1", keys...))
	room := start(h)
	h.Settle()
	for range len(keys) {
		keys = append(keys[1:], keys[0])
		volume := at("a")
		terms := volume.Spec.NodeAffinity.Required.NodeSelectorTerms
		terms[0].MatchExpressions = nil
		for _, key := range keys {
			terms[0].MatchExpressions = append(terms[0].MatchExpressions,
				corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{labels[key]}})
		}
		h.Clock.Step(2 * time.Second)
		seen := len(h.Driver.Calls("GetCapacity"))
		room.Provisioned(volume)
		h.Settle()
		if asked := len(h.Driver.Calls("GetCapacity")) - seen; asked != 1 {
			t.Errorf("PW-18: %d questions after a volume with the keys %q", asked, keys)
		}
	}
}

// Nobody hears of anything where there is no room of capacities, and nothing is done before it begins.
func TestNobodyThere(t *testing.T) {
	var nobody *Controller
	nobody.Provisioned(at("a"))
	nobody.Deleted(at("a"))
	nobody.Failed("fast", "n1")
	h := world(t, "a")
	early := New(*NewOptions(), Deps{Clock: h.Clock, Topology: h.Topology, Classes: h.Stores.StorageClasses, Objects: h.Stores.Capacities, RetryStart: 1, RetryMax: 2})
	early.Provisioned(at("a"))
	early.Failed("fast", "n1")
	if early.Len() != 0 {
		t.Errorf("%d keys before the beginning", early.Len())
	}
}

// TestFullSegmentIsCorrected: what has run out is in the object within two seconds, although the driver was
// asked just before, and the next poll is far away.
func TestFullSegmentIsCorrected(t *testing.T) {
	h := world(t, "a")
	room := start(h)
	h.Settle()
	holding(h, map[string]int64{"a": 0})
	h.Clock.Step(100 * time.Millisecond)
	h.Horizon = 1900 * time.Millisecond
	room.Failed("fast", "n1")
	h.Settle()
	expect(t, h, "corrected", "fast zone=a 0")
}

// TestBurst (B069): ten thousand claims are not ten thousand writes. One that writes at each volume would make
// as many as there are volumes.
func TestBurst(t *testing.T) {
	h := world(t, "a")
	room := start(h)
	h.Settle()
	h.Clock.Step(10 * time.Second)
	h.Log.Clear()
	left := int64(1 << 40)
	h.Driver.Capacity = func(*csi.GetCapacityRequest) *csi.GetCapacityResponse {
		return &csi.GetCapacityResponse{AvailableCapacity: left}
	}
	h.Horizon = 0
	const seconds, each = 5, 2000
	for range seconds * 10 {
		for range each / 10 {
			left -= 1 << 20
			room.Provisioned(at("a"))
			h.Settle()
		}
		h.Clock.Step(100 * time.Millisecond)
	}
	h.Horizon = 5 * time.Second
	h.Settle()
	writes := 0
	for _, request := range h.API.Requests() {
		if request.Verb == "patch" {
			writes++
		}
	}
	if writes > seconds+1 {
		t.Errorf("B069: %d writes of one object in %d seconds", writes, seconds)
	}
	if got := kit.All[*storagev1.CSIStorageCapacity](h.API)[0].Capacity.Value(); got != left {
		t.Errorf("B069: the last value is %d, want %d", got, left)
	}
}

// A capacity object is removed by hand while the driver does not answer. Catches one that stays away until it does, although its last answer is known.
func TestRemovedDuringAnOutage(t *testing.T) {
	h := world(t, "a")
	start(h)
	h.Settle()
	h.Driver.Next("GetCapacity", kit.Reply{Code: codes.Unavailable, Text: "x", Times: 1000})
	remove(h, 0)
	h.Horizon = 10 * time.Minute
	h.Settle()
	expect(t, h, "removed", "fast zone=a 1Ti")
}
