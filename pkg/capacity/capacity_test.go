// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

func TestIsPublished(t *testing.T) {
	immediate, late := storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	for _, c := range []struct {
		name        string
		provisioner string
		mode        *storagev1.VolumeBindingMode
		immediate   bool
		want        bool
	}{
		{"T89 late binding", "d", &late, false, true},
		{"T90 immediate", "d", &immediate, false, false},
		{"T90 immediate, and asked for", "d", &immediate, true, true},
		{"no mode is not immediate", "d", nil, false, true},
		{"T90 another driver", "e", &late, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Rules{Driver: "d", Immediate: c.immediate}
			if got := r.IsPublished(&storagev1.StorageClass{Provisioner: c.provisioner, VolumeBindingMode: c.mode}); got != c.want {
				t.Error(got)
			}
		})
	}
}

func TestSlotOf(t *testing.T) {
	selects := func(selector *metav1.LabelSelector) *storagev1.CSIStorageCapacity {
		return &storagev1.CSIStorageCapacity{StorageClassName: "c", NodeTopology: selector}
	}
	in := []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: []string{"a"}}}
	for _, c := range []struct {
		name     string
		selector *metav1.LabelSelector
		want     string
		ok       bool
	}{
		{"PW-18 labels, in whatever order", &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a", "rack": "1"}}, "{rack: 1, zone: a}", true},
		{"all nodes", &metav1.LabelSelector{}, "{}", true},
		{"no node", nil, "", false},
		{"another form", &metav1.LabelSelector{MatchExpressions: in}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			slot, ok := SlotOf(selects(c.selector))
			if ok != c.ok || slot.Segment != c.want {
				t.Error(slot, ok)
			}
		})
	}
}

func TestRoomOf(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer *csi.GetCapacityResponse
		want   Room
	}{
		{"no answer at all", nil, Room{}},
		{"as said", &csi.GetCapacityResponse{AvailableCapacity: 7, MaximumVolumeSize: wrapperspb.Int64(5)}, Room{7, pointer[int64](5)}},
		{"no volume is small enough", &csi.GetCapacityResponse{AvailableCapacity: 7, MaximumVolumeSize: wrapperspb.Int64(0)}, Room{7, pointer[int64](0)}},
		{"less than nothing", &csi.GetCapacityResponse{AvailableCapacity: -1, MaximumVolumeSize: wrapperspb.Int64(-1)}, Room{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, RoomOf(c.answer)); d != "" {
				t.Error(d)
			}
		})
	}
}

// PW-6: passing the map of the class on would show reserved keys to the driver.
func TestQuestion(t *testing.T) {
	class := &storagev1.StorageClass{Parameters: map[string]string{
		"pool": "fast", "csi.storage.k8s.io/fstype": "ext4", "csi.storage.k8s.io/provisioner-secret-name": "s", "csi.storage.k8s.io/misspelt": "x",
	}}
	for _, c := range []struct {
		name    string
		segment topology.Segment
		want    *csi.GetCapacityRequest
	}{
		{"PW-6 reserved keys are ours", zoneA, &csi.GetCapacityRequest{
			Parameters: map[string]string{"pool": "fast"}, AccessibleTopology: &csi.Topology{Segments: map[string]string{"zone": "a"}},
		}},
		{"PW-6 an empty segment is left out", nil, &csi.GetCapacityRequest{Parameters: map[string]string{"pool": "fast"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Question(Parameters(class), c.segment); !proto.Equal(c.want, got) {
				t.Error(got)
			}
		})
	}
	if len(class.Parameters) != 4 {
		t.Error("the class of the cache was changed")
	}
}

func TestGroupOf(t *testing.T) {
	same := []map[string]string{{"a": "1", "b": "2"}, {"b": "2", "a": "1"}}
	if GroupOf(same[0]) != GroupOf(same[1]) {
		t.Error("the order of a map counts")
	}
	if GroupOf(nil) != GroupOf(map[string]string{}) {
		t.Error("no parameters are not no parameters")
	}
	seen := map[string]bool{}
	for _, parameters := range []map[string]string{nil, {"a": "1"}, {"a": "1,b=2"}, {"a": "1", "b": "2"}, {"a": `1","b"="2`}, {"": ""}} {
		seen[GroupOf(parameters)] = true
	}
	if len(seen) != 6 {
		t.Errorf("6 sets of parameters are in %d groups", len(seen))
	}
}
