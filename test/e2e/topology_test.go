// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// asked is the part of CreateVolumeRequest about places.
type asked struct {
	Name     string `json:"name"`
	Topology *struct {
		Requisite []term `json:"requisite"`
		Preferred []term `json:"preferred"`
	} `json:"accessibility_requirements"`
}

type term struct {
	Segments map[string]string `json:"segments"`
}

func zonesOf(t *testing.T, terms []term) []string {
	t.Helper()
	var all []string
	for _, one := range terms {
		if len(one.Segments) != 1 {
			t.Errorf("a term has the segments %v", one.Segments)
		}
		all = append(all, one.Segments[zoneKey])
	}
	return all
}

// topologyRow is one line of the decision table (spec part 6.1). Zone z3 is that of the node of the control plane, on
// which the driver is not: it counts as a place, and nothing can be made there.
type topologyRow struct {
	name string
	// node is selected by the scheduler; without one the binding is Immediate.
	node    string
	allowed []string
	// requisite nil means that the driver is told nothing of places.
	requisite []string
	// first is the preferred one that comes first; empty is any, and preferred is then a rotation of the requisite.
	first string
	// in is where the volume has to be; empty is any.
	in string
}

func TestTopology(t *testing.T) {
	t.Parallel()
	everywhere := []string{"z1", "z2", "z3"}
	tests := []struct {
		name  string
		flags []string
		rows  []topologyRow
	}{
		{"no flags", nil, []topologyRow{
			{name: "a node, nothing allowed in particular", node: "worker-2", requisite: everywhere, first: "z2", in: "z2"},
			{name: "a node, some allowed", node: "worker-2", allowed: []string{"z1", "z2"}, requisite: []string{"z1", "z2"}, first: "z2", in: "z2"},
			{name: "no node, one allowed", allowed: []string{"z2"}, requisite: []string{"z2"}, first: "z2", in: "z2"},
			{name: "no node, all of the cluster", requisite: everywhere},
		}},
		{"strict", []string{"--strict-topology"}, []topologyRow{
			{name: "a node, nothing allowed in particular", node: "worker-2", requisite: []string{"z2"}, first: "z2", in: "z2"},
			{name: "a node, some allowed", node: "worker-1", allowed: []string{"z1", "z2"}, requisite: []string{"z1"}, first: "z1", in: "z1"},
			{name: "no node, one allowed", allowed: []string{"z1"}, requisite: []string{"z1"}, first: "z1", in: "z1"},
		}},
		{"not for immediate", []string{"--immediate-topology=false"}, []topologyRow{
			{name: "no node, nothing allowed in particular"},
			{name: "no node, one allowed", allowed: []string{"z2"}, requisite: []string{"z2"}, first: "z2", in: "z2"},
			{name: "a node is what it always is", node: "worker-1", requisite: everywhere, first: "z1", in: "z1"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, setup{withoutSnapshotter: true, provisioner: tt.flags})
			for i, row := range tt.rows {
				w.checkRow(fmt.Sprint("row", i), row)
			}
		})
	}
}

func (w *world) checkRow(name string, row topologyRow) {
	w.Helper()
	var edits []func(*storagev1.StorageClass)
	if row.node != "" {
		edits = append(edits, waiting)
	}
	if row.allowed != nil {
		edits = append(edits, allowing(row.allowed...))
	}
	w.claim(name, w.class(name, edits...))
	if row.node != "" {
		w.pod(name, name, row.node)
		w.runs(name)
	}
	pv := w.bound(name)
	var call asked
	for _, c := range w.calls("CreateVolume") {
		if a := request[asked](w, c); a.Name == pv.Name {
			call = a
		}
	}
	if call.Name == "" {
		w.Fatalf("%q: the driver was not asked for %s", row.name, pv.Name)
	}
	if call.Topology == nil {
		if row.requisite != nil {
			w.Errorf("%q: nothing was said of places", row.name)
		}
		return
	}
	requisite, preferred := zonesOf(w.T, call.Topology.Requisite), zonesOf(w.T, call.Topology.Preferred)
	if !slices.Equal(requisite, row.requisite) {
		w.Errorf("%q: requisite is %q, want %q", row.name, requisite, row.requisite)
	}
	if len(preferred) == 0 || row.first != "" && preferred[0] != row.first || !isRotation(requisite, preferred) {
		w.Errorf("%q: preferred is %q, want the requisite %q rotated to %q", row.name, preferred, requisite, row.first)
	}
	if row.in != "" {
		checkZones(w.T, pv, row.in)
	}
}

func isRotation(a, b []string) bool {
	for i := range a {
		if slices.Equal(slices.Concat(a[i:], a[:i]), b) {
			return true
		}
	}
	return len(a) == len(b) && len(a) == 0
}

// TestSelectedNodeOutsideOfWhatIsAllowed: the scheduler does not select such a node, but somebody may have.
func TestSelectedNodeOutsideOfWhatIsAllowed(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, provisioner: []string{"--strict-topology"}})
	w.claim("data", w.class("class", waiting, allowing("z1")), func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "worker-2"}
	})
	w.told("data", "Warning ProvisioningFailed", "error generating accessibility requirements: ",
		`selected node '"worker-2"' topology '`, "is not in allowed topologies: ")
	if calls := w.calls("CreateVolume"); len(calls) > 0 {
		t.Errorf("CreateVolume was called: %s", calls[0].Request)
	}
}

// TestNoTopology: a driver without topology is told nothing of places, and its volumes have no affinity.
func TestNoTopology(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true})
	w.claim("data", w.class("late", waiting))
	w.pod("app", "data", "worker-1")
	w.runs("app")
	pv := w.bound("data")
	if pv.Spec.NodeAffinity != nil {
		t.Errorf("the volume has the affinity %s", text(pv.Spec.NodeAffinity))
	}
	if call := request[asked](w, w.calls("CreateVolume")[0]); call.Topology != nil {
		t.Errorf("the driver was told of places: %s", text(call))
	}
}

// TestNoRoomWhereThePodGoes: the node's place is full, so the claim is given back to the scheduler, which may choose
// another node. Left to itself it might choose the same one again and again: here it has no choice each time.
func TestNoRoomWhereThePodGoes(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, driver: []string{"--pool-capacity=1536Mi"}, provisioner: []string{"--strict-topology"}})
	class := w.class("late", waiting)
	w.claim("first", class)
	w.pod("first", "first", "worker-1")
	w.runs("first")
	w.claim("second", class)
	w.pod("full", "second", "worker-1")
	w.told("second", "Warning ProvisioningFailed", "code = ResourceExhausted", "no pool has the room")
	w.told("full", "FailedScheduling", `provisioning failed for PVC "second"`)
	w.endPod("full")
	w.pod("room", "second", "worker-2")
	w.runs("room")
	checkZones(t, w.bound("second"), "z2")
}
