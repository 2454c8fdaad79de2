// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestFollowsTheCluster: nodes, drivers and classes come and go, and so do objects.
func TestFollowsTheCluster(t *testing.T) {
	h := world(t, "a", "a", "b")
	start(h)
	h.Settle()
	expect(t, h, "T93 two nodes of one segment are one object", "fast zone=a 1Ti", "fast zone=b 1Ti")
	label := func(node, zone string) {
		kit.Edit(h.API, kube.Key{Name: node}, func(n *corev1.Node) { n.Labels["zone"] = zone })
	}
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"T93 a label changes", func() { label("n3", "c") }, []string{"fast zone=a 1Ti", "fast zone=c 1Ti"}},
		{"T93 one of two nodes leaves", func() { kit.Remove[*corev1.Node](h.API, kube.Key{Name: "n1"}) }, []string{"fast zone=a 1Ti", "fast zone=c 1Ti"}},
		{"T93 and the other", func() { kit.Remove[*corev1.Node](h.API, kube.Key{Name: "n2"}) }, []string{"fast zone=c 1Ti"}},
		{"T93 the driver leaves a node", func() {
			kit.Edit(h.API, kube.Key{Name: "n3"}, func(n *storagev1.CSINode) { n.Spec.Drivers = nil })
		}, []string{}},
		{"T90 classes without segments have no objects", func() { h.Put(late("slow", "pool=slow")) }, []string{}},
		{"T93 and comes back with another key", func() { h.Put(kit.CSINode("n3", "name")) }, []string{"fast name=n3 1Ti", "slow name=n3 1Ti"}},
		{"a class goes", func() { kit.Remove[*storagev1.StorageClass](h.API, kube.Key{Name: "slow"}) }, []string{"fast name=n3 1Ti"}},
		{"PW-15 the last class and the last segment go at once", func() {
			kit.Remove[*storagev1.StorageClass](h.API, kube.Key{Name: "fast"})
			kit.Remove[*corev1.Node](h.API, kube.Key{Name: "n3"})
		}, []string{}},
	} {
		step.do()
		h.Settle()
		expect(t, h, step.name, step.want...)
	}
}

// A class that was made anew under its name may mean another pool.
func TestClassMadeAnew(t *testing.T) {
	h := world(t, "a")
	start(h)
	h.Settle()
	kit.Remove[*storagev1.StorageClass](h.API, kube.Key{Name: "fast"})
	h.Put(late("fast", "pool=new"))
	holding(h, nil)
	h.Settle()
	expect(t, h, "the value is the one of the new pool", "fast zone=a 1Gi")
	// Other changes of a class say nothing about room.
	h.Log.Clear()
	kit.Edit(h.API, kube.Key{Name: "fast"}, func(c *storagev1.StorageClass) { c.AllowVolumeExpansion = kit.Ptr(true) })
	h.Settle()
	did(t, h, "an edit that says nothing about room")
}

// TestObjectsInOtherHands: what others do to our objects is put right, and what is theirs is left.
func TestObjectsInOtherHands(t *testing.T) {
	h := world(t, "a")
	foreign := &storagev1.CSIStorageCapacity{StorageClassName: "fast"}
	foreign.Namespace, foreign.Name = kit.Namespace, "theirs"
	unlabelled := foreign.DeepCopy()
	foreign.Labels = map[string]string{"csi.storage.k8s.io/drivername": kit.DriverName, "csi.storage.k8s.io/managed-by": "somebody"}
	unlabelled.Name = "unlabelled"
	start(h)
	h.Settle()
	own := func() *storagev1.CSIStorageCapacity { return kit.All[*storagev1.CSIStorageCapacity](h.API)[0] }

	h.Log.Clear()
	remove(h, 0)
	h.Settle()
	expect(t, h, "T92 deleted by somebody: made again", "fast zone=a 1Ti")
	did(t, h, "T92", "driver GetCapacity zone=a → OK", "create csistoragecapacities default/")

	name := own().Name
	kit.Edit(h.API, kube.KeyOf(own()), func(o *storagev1.CSIStorageCapacity) { o.Capacity.SetMilli(1000) })
	h.Settle()
	expect(t, h, "T92 a wrong value is corrected in place", "fast zone=a 1Ti")
	did(t, h, "T92", "driver GetCapacity zone=a → OK", `patch csistoragecapacities default/`+name+` {"capacity":"1Ti"}`)

	wrong := own()
	kit.Remove[*storagev1.CSIStorageCapacity](h.API, kube.KeyOf(wrong))
	wrong.UID, wrong.ResourceVersion, wrong.Name = "", "", "csisc-again"
	wrong.Capacity.SetMilli(1000)
	h.Put(wrong)
	h.Settle()
	expect(t, h, "T92 deleted and made again with a wrong value: corrected in place", "fast zone=a 1Ti")
	if own().Name != "csisc-again" {
		t.Errorf("T92: %s instead", own().Name)
	}

	h.Log.Clear()
	h.Put(foreign, unlabelled)
	h.Settle()
	did(t, h, "T92 what others manage is left alone")

	kit.Edit(h.API, kube.KeyOf(wrong), func(o *storagev1.CSIStorageCapacity) { o.Labels = nil })
	h.Settle()
	did(t, h, "one that has lost its labels is foreign, and replaced", "driver GetCapacity zone=a → OK", "create csistoragecapacities default/")
}

// B065: after a watch that was cut, what has gone unseen is in no object and in no memory.
func TestDeletionsThatNobodySaw(t *testing.T) {
	h := world(t, "a", "b", "c", "d")
	h.Put(late("slow", "pool=slow"))
	c := start(h)
	h.Settle()
	h.Stores.Hold()
	for _, node := range []string{"n2", "n3", "n4"} {
		kit.Remove[*corev1.Node](h.API, kube.Key{Name: node})
		kit.Remove[*storagev1.CSINode](h.API, kube.Key{Name: node})
	}
	kit.Remove[*storagev1.StorageClass](h.API, kube.Key{Name: "slow"})
	remove(h, 0)
	h.Stores.Sync()
	h.Settle()
	expect(t, h, "B065", "fast zone=a 1Ti")
	h.Horizon = 3 * c.options.PollInterval // forgotten when its turn comes
	h.Settle()
	if len(c.memory.asks) != 1 || len(c.memory.segments) != 1 || len(c.memory.made) != 0 || len(c.memory.classes.groups) != 1 {
		t.Errorf("B065: %d questions, %d segments, %d new objects and %d groups stay behind", len(c.memory.asks), len(c.memory.segments), len(c.memory.made), len(c.memory.classes.groups))
	}
}
