// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// start adds the room to a world, with edited dependencies, as Run does.
func start(h *kit.Harness, edits ...func(*Options, *Deps)) *Controller {
	h.T.Helper()
	options := NewOptions()
	options.OwnerLevel = -1
	deps := Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Identity: "id-1", Clock: h.Clock,
		Topology: h.Topology, Classes: h.Stores.StorageClasses, Objects: h.Stores.Capacities, Namespace: kit.Namespace, Pod: "pod",
		RetryStart: h.RetryStart, RetryMax: h.RetryMax,
	}
	for _, edit := range edits {
		edit(options, &deps)
	}
	c := New(*options, deps)
	c.add = func(key reconcile.Key) { h.Enqueue("capacity", key) }
	h.Add(kit.Room{Name: "capacity", Reconcile: c.Reconcile, Keys: kit.Feeds(kit.On(c.KeysOfClass), kit.On(c.KeysOfObject))})
	c.WatchSegments()
	owner, err := c.awaitOwner(h.Ctx)
	if err != nil && h.Ctx.Err() == nil {
		h.T.Fatal(err)
	}
	c.owner.Store(owner)
	for _, key := range c.Begin() {
		c.add(key)
	}
	return c
}

// world is nodes with the driver, each in a zone, with a late binding class.
func world(t testing.TB, zones ...string) *kit.Harness {
	h := kit.New(t)
	h.Horizon = 20 * time.Second // shorter than half a poll
	for i, zone := range zones {
		node := "n" + string(rune('1'+i))
		h.Put(kit.Node(node, map[string]string{"zone": zone, "name": node}), kit.CSINode(node, "zone"))
	}
	h.Put(late("fast"))
	return h
}

func late(name string, parameters ...string) *storagev1.StorageClass {
	class := kit.Class(name, kit.WaitForConsumer)
	for _, parameter := range parameters {
		key, value, _ := strings.Cut(parameter, "=")
		class.Parameters[key] = value
	}
	return class
}

// objects shows what is published, as "class segment capacity", sorted.
func objects(h *kit.Harness) []string {
	lines := []string{}
	for _, o := range kit.All[*storagev1.CSIStorageCapacity](h.API) {
		line := o.StorageClassName + " "
		for k, v := range o.NodeTopology.MatchLabels {
			line += k + "=" + v
		}
		line += " " + o.Capacity.String()
		if o.MaximumVolumeSize != nil {
			line += " max " + o.MaximumVolumeSize.String()
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func expect(t *testing.T, h *kit.Harness, name string, want ...string) {
	t.Helper()
	if d := cmp.Diff(append([]string{}, want...), objects(h)); d != "" {
		t.Errorf("%s (-want +got):\n%s\nturns:\n%s", name, d, h.Trace())
	}
}

// did compares the effects since the last call.
func did(t *testing.T, h *kit.Harness, name string, want ...string) {
	t.Helper()
	if d := cmp.Diff(append([]string{}, want...), append([]string{}, h.Log.Lines()...)); d != "" {
		t.Errorf("%s: effects (-want +got):\n%s\nturns:\n%s", name, d, h.Trace())
	}
	h.Log.Clear()
}

// holding answers with these sizes for the zones, and with 1Gi for all others.
func holding(h *kit.Harness, sizes map[string]int64) {
	h.Driver.Capacity = func(q *csi.GetCapacityRequest) *csi.GetCapacityResponse {
		size, ok := sizes[q.GetAccessibleTopology().GetSegments()["zone"]]
		if !ok {
			size = 1 << 30
		}
		return &csi.GetCapacityResponse{AvailableCapacity: size}
	}
}

func remove(h *kit.Harness, index int) string {
	all := kit.All[*storagev1.CSIStorageCapacity](h.API)
	kit.Remove[*storagev1.CSIStorageCapacity](h.API, kube.KeyOf(all[index]))
	return all[index].Name
}

func TestPublishes(t *testing.T) {
	h := world(t, "a")
	holding(h, map[string]int64{"a": 0})
	h.Put(kit.Class("now"), kit.With(late("foreign")))
	kit.Edit(h.API, kube.Key{Name: "foreign"}, func(c *storagev1.StorageClass) { c.Provisioner = "other" })
	start(h)
	h.Settle()
	expect(t, h, "T89 T90 zero is published, for late binding of our driver only", "fast zone=a 0")
	did(t, h, "T89", "driver GetCapacity zone=a → OK", "create csistoragecapacities default/")
	object := kit.All[*storagev1.CSIStorageCapacity](h.API)[0]
	want := map[string]string{"csi.storage.k8s.io/drivername": kit.DriverName, "csi.storage.k8s.io/managed-by": "external-provisioner"}
	if d := cmp.Diff(want, object.Labels); d != "" || object.GenerateName != "csisc-" || len(object.OwnerReferences) != 0 {
		t.Error("T89", d, object)
	}
}

func TestImmediateClassesIfAskedFor(t *testing.T) {
	h := world(t, "a")
	h.Put(kit.Class("now"))
	start(h, func(o *Options, _ *Deps) { o.Immediate = true })
	h.Settle()
	expect(t, h, "T90", "fast zone=a 1Ti", "now zone=a 1Ti")
}

func TestSegmentsTimesClasses(t *testing.T) {
	h := world(t, "a", "b")
	h.Put(late("slow", "pool=slow"))
	start(h)
	h.Settle()
	all := []string{"fast zone=a 1Ti", "fast zone=b 1Ti", "slow zone=a 1Ti", "slow zone=b 1Ti"}
	expect(t, h, "T91", all...)
	before := kit.All[*storagev1.CSIStorageCapacity](h.API)

	// A second life finds them: the driver is asked, and nothing is written (adopted after a restart).
	surplus := before[0].DeepCopy()
	surplus.Name, surplus.UID, surplus.StorageClassName = "csisc-surplus", "", "gone"
	twin := before[1].DeepCopy()
	twin.Name, twin.UID, twin.CreationTimestamp.Time = "csisc-twin", "", kit.Start.Add(time.Hour)
	strange := before[2].DeepCopy()
	strange.Name, strange.UID, strange.NodeTopology.MatchLabels = "csisc-strange", "", map[string]string{"zone": "z"}
	h.Put(surplus, twin, strange)
	h.Restart()
	h.Log.Clear()
	start(h)
	h.Settle()
	expect(t, h, "T91 surplus, duplicate and unknown ones go", all...)
	for i, object := range kit.All[*storagev1.CSIStorageCapacity](h.API) {
		if object.UID != before[i].UID || object.ResourceVersion != before[i].ResourceVersion {
			t.Errorf("T91: %s was not left as it was", object.Name)
		}
	}
	if calls := h.Driver.Calls("GetCapacity"); len(calls) != 8 {
		t.Errorf("%d calls for twice two segments and two sorts of classes", len(calls))
	}
}

// Classes that differ in what the driver never sees are one question.
func TestClassesShareQuestions(t *testing.T) {
	h := world(t, "a")
	h.Put(late("ext4", "csi.storage.k8s.io/fstype=ext4"), late("xfs", "csi.storage.k8s.io/fstype=xfs"))
	start(h)
	h.Settle()
	expect(t, h, "three classes", "ext4 zone=a 1Ti", "fast zone=a 1Ti", "xfs zone=a 1Ti")
	calls := h.Driver.Calls("GetCapacity")
	if len(calls) != 1 {
		t.Fatalf("%d calls for one segment and one set of parameters", len(calls))
	}
	if request := calls[0].Request.(*csi.GetCapacityRequest); len(request.Parameters) != 0 || len(request.VolumeCapabilities) != 0 {
		t.Error("PW-6", request)
	}
}

// PW-6: a driver without topology must not be told of segments, whatever its nodes are registered with. One that asks with
// what it publishes for, or with an empty segment, does so.
func TestDriverWithoutTopology(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
		want string
	}{
		{"PW-6 one object for all nodes", nil, "fast  1Ti"},
		{"PW-6 nodes with keys that the driver does not stand by", []string{"zone"}, "fast zone=a 1Ti"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Horizon = 20 * time.Second
			h.Put(kit.Node("n1", map[string]string{"zone": "a"}), kit.CSINode("n1", c.keys...), late("fast"))
			start(h, func(_ *Options, d *Deps) {
				d.Capabilities = capability.Of(nil, csi.ControllerServiceCapability_RPC_GET_CAPACITY)
			})
			h.Settle()
			expect(t, h, c.name, c.want)
			if request := h.Driver.Calls("GetCapacity")[0].Request.(*csi.GetCapacityRequest); request.AccessibleTopology != nil {
				t.Error(request)
			}
		})
	}
}
