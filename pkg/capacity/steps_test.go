// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

var (
	zoneA = topology.SegmentOf(map[string]string{"zone": "a"})
	rules = Rules{Driver: "d", Namespace: "ns", ManagedBy: "external-provisioner", Owner: controller("us", "uid-us")}
)

func pointer[T any](value T) *T { return &value }

func controller(name, uid string) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name, UID: types.UID(uid), Controller: pointer(true)}
}

func quantity(bytes int64) *resource.Quantity { return resource.NewQuantity(bytes, resource.BinarySI) }

// object is one as it is written for zone a, class c and 10 bytes.
func object(edits ...func(*storagev1.CSIStorageCapacity)) *storagev1.CSIStorageCapacity {
	o := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "csisc-", Namespace: "ns",
			Labels:          map[string]string{"csi.storage.k8s.io/drivername": "d", "csi.storage.k8s.io/managed-by": "external-provisioner"},
			OwnerReferences: []metav1.OwnerReference{*controller("us", "uid-us")},
		},
		StorageClassName: "c", NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}, Capacity: quantity(10),
	}
	for _, edit := range edits {
		edit(o)
	}
	return o
}

type edit = func(*storagev1.CSIStorageCapacity)

func named(name string, age time.Duration) edit {
	return func(o *storagev1.CSIStorageCapacity) {
		o.Name, o.UID = name, types.UID("uid-"+name)
		o.CreationTimestamp = metav1.NewTime(time.Unix(1e9, 0).Add(-age))
	}
}

func owners(list ...metav1.OwnerReference) edit {
	return func(o *storagev1.CSIStorageCapacity) { o.OwnerReferences = list }
}

func labelled(key, value string) edit {
	return func(o *storagev1.CSIStorageCapacity) { o.Labels[key] = value }
}

func holds(bytes int64) edit {
	return func(o *storagev1.CSIStorageCapacity) { o.Capacity = quantity(bytes) }
}

func deleted(o *storagev1.CSIStorageCapacity) {
	o.DeletionTimestamp = pointer(metav1.NewTime(time.Unix(1e9, 0)))
}

func TestNextSteps(t *testing.T) {
	room := &Room{Available: 10}
	old, young := object(named("x", time.Hour)), object(named("a", time.Minute))
	twin := object(named("b", time.Minute))
	foreigner := object(named("f", time.Hour), labelled("csi.storage.k8s.io/managed-by", "external-provisioner-node-1"))
	elsewhere := object(named("e", time.Hour), func(o *storagev1.CSIStorageCapacity) { o.Namespace = "other" })
	other := object(named("o", time.Hour), labelled("csi.storage.k8s.io/drivername", "e"))
	dying := object(named("t", time.Hour), deleted)
	low := object(named("x", time.Hour), holds(9))
	capped := object(named("x", time.Hour), func(o *storagev1.CSIStorageCapacity) { o.MaximumVolumeSize = quantity(5) })
	empty := object(named("x", time.Hour), func(o *storagev1.CSIStorageCapacity) { o.Capacity = nil })
	written := object(named("x", time.Hour), func(o *storagev1.CSIStorageCapacity) { o.Capacity = resource.NewQuantity(10, resource.DecimalSI) })
	us := []metav1.OwnerReference{*controller("us", "uid-us")}
	update := func(o *storagev1.CSIStorageCapacity, maximum *resource.Quantity) Update {
		return Update{Object: o, Capacity: quantity(10), Maximum: maximum, Owners: us}
	}
	for _, c := range []struct {
		name   string
		gone   bool
		room   *Room
		found  []*storagev1.CSIStorageCapacity
		expect []Step
	}{
		{name: "T89 a new one", room: room, expect: []Step{Create{object()}}},
		{name: "T89 zero is published", room: &Room{}, expect: []Step{Create{object(holds(0))}}},
		{name: "T89 with the largest volume", room: &Room{Available: 10, Maximum: pointer[int64](5)}, expect: []Step{Create{object(func(o *storagev1.CSIStorageCapacity) { o.MaximumVolumeSize = quantity(5) })}}},
		{name: "no answer yet, nothing is made up"},
		{name: "B067 no answer, the old value stays", found: []*storagev1.CSIStorageCapacity{low}, expect: []Step{Keep{low}}},
		{name: "T91 as it should be", room: room, found: []*storagev1.CSIStorageCapacity{old}, expect: []Step{Keep{old}}},
		{name: "written in another way", room: room, found: []*storagev1.CSIStorageCapacity{written}, expect: []Step{Keep{written}}},
		{name: "T91 another value", room: room, found: []*storagev1.CSIStorageCapacity{low}, expect: []Step{update(low, nil)}},
		{name: "a limit that is gone", room: room, found: []*storagev1.CSIStorageCapacity{capped}, expect: []Step{update(capped, nil)}},
		{name: "a limit that is new", room: &Room{Available: 10, Maximum: pointer[int64](5)}, found: []*storagev1.CSIStorageCapacity{old}, expect: []Step{update(old, quantity(5))}},
		{name: "no value at all", room: room, found: []*storagev1.CSIStorageCapacity{empty}, expect: []Step{update(empty, nil)}},
		{name: "T91 the oldest of several stays", room: room, found: []*storagev1.CSIStorageCapacity{young, old, twin}, expect: []Step{Keep{old}, Delete{young, Duplicate}, Delete{twin, Duplicate}}},
		{name: "T91 duplicates go without an answer too", found: []*storagev1.CSIStorageCapacity{young, old}, expect: []Step{Keep{old}, Delete{young, Duplicate}}},
		{name: "of two of one age the UID decides, for everybody", room: room, found: []*storagev1.CSIStorageCapacity{twin, young}, expect: []Step{Keep{young}, Delete{twin, Duplicate}}},
		{name: "T92 what others manage does not count", room: room, found: []*storagev1.CSIStorageCapacity{foreigner, elsewhere, other}, expect: []Step{Create{object()}}},
		{name: "one that is being deleted does not count", room: room, found: []*storagev1.CSIStorageCapacity{dying}, expect: []Step{Create{object()}}},
		{name: "T91 PW-15 unwanted", gone: true, room: room, found: []*storagev1.CSIStorageCapacity{old, young}, expect: []Step{Delete{old, Unwanted}, Delete{young, Unwanted}}},
		{name: "T92 unwanted, but of others or on its way", gone: true, room: room, found: []*storagev1.CSIStorageCapacity{foreigner, elsewhere, other, dying}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := rules.NextSteps(Input{Class: "c", Segment: zoneA, IsWanted: !c.gone, Room: c.room, Found: c.found})
			if d := cmp.Diff(c.expect, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// PW-16: appending would leave two controllers, which the API server refuses for ever.
func TestOwners(t *testing.T) {
	us, them := *controller("us", "uid-us"), *controller("them", "uid-them")
	friend := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "friend", UID: "uid-friend"}
	unmarked := us
	unmarked.Controller = nil
	for _, c := range []struct {
		name   string
		no     bool
		now    []metav1.OwnerReference
		expect []metav1.OwnerReference // nil: it stays as it is
	}{
		{name: "T94 none", expect: []metav1.OwnerReference{us}},
		{name: "ours", now: []metav1.OwnerReference{us}},
		{name: "T94 another that does not control", now: []metav1.OwnerReference{friend}, expect: []metav1.OwnerReference{friend, us}},
		{name: "PW-16 another controller is replaced", now: []metav1.OwnerReference{them}, expect: []metav1.OwnerReference{us}},
		{name: "PW-16 and others stay", now: []metav1.OwnerReference{them, friend}, expect: []metav1.OwnerReference{friend, us}},
		{name: "ours without the mark", now: []metav1.OwnerReference{unmarked}, expect: []metav1.OwnerReference{us}},
		{name: "T94 level -1 leaves owners", no: true, now: []metav1.OwnerReference{them}},
		{name: "T94 level -1 and none", no: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rules
			if c.no {
				r.Owner = nil
			}
			o := object(named("x", 0), owners(c.now...))
			expect := []Step{Keep{o}}
			if c.expect != nil {
				expect = []Step{Update{Object: o, Capacity: quantity(10), Owners: c.expect}}
			}
			got := r.NextSteps(Input{Class: "c", Segment: zoneA, IsWanted: true, Room: &Room{Available: 10}, Found: []*storagev1.CSIStorageCapacity{o}})
			if d := cmp.Diff(expect, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWithoutOwner(t *testing.T) {
	r := rules
	r.Owner = nil
	got := r.NextSteps(Input{Class: "c", Segment: zoneA, IsWanted: true, Room: &Room{Available: 10}})
	if d := cmp.Diff([]Step{Create{object(owners())}}, got); d != "" {
		t.Error("T94", d)
	}
}
