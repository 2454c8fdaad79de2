// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func capacityObject(name, zone, free, largest string) *storagev1.CSIStorageCapacity {
	c := &storagev1.CSIStorageCapacity{StorageClassName: kit.ClassName, NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": zone}}}
	c.Namespace, c.Name, c.Labels = "csi", name, map[string]string{wellknown.LabelCapacityDriver: kit.DriverName}
	quantity := func(text string) *resource.Quantity {
		if text == "" {
			return nil
		}
		return kit.Ptr(resource.MustParse(text))
	}
	c.Capacity, c.MaximumVolumeSize = quantity(free), quantity(largest)
	return c
}

// TestRoom: a pod that stays pending for want of room is told by the scheduler of neither driver nor segment. The largest
// volume counts before the sum: who compares with the sum says "enough" where the scheduler says no.
func TestRoom(t *testing.T) {
	h := kit.New(t)
	other := capacityObject("x", "a", "1Ti", "")
	other.StorageClassName = "other"
	h.Put(kit.Claim("data"), kit.Class(kit.ClassName, kit.WaitForConsumer), other, capacityObject("c1", "a", "9Gi", ""),
		capacityObject("c2", "b", "9Gi", "512Mi"), capacityObject("c3", "c", "", ""))
	h.Clock.Step(4 * time.Minute)
	report := explainClaim(t, h, askedDriver(placed()))
	text := strings.Join(strings.Fields(written(t, report, "text")), " ")
	for _, says := range []string{
		"zone=a: 9Gi free, enough (CSIStorageCapacity csi/c1, changed 4m ago)",
		"zone=b: 9Gi free, 512Mi for one volume, too little (CSIStorageCapacity csi/c2",
		"zone=c: nothing is known free, too little (CSIStorageCapacity csi/c3",
	} {
		if !strings.Contains(text, says) {
			t.Errorf("does not say %q: %s", says, text)
		}
	}
	if len(report.Room) != 3 {
		t.Errorf("of other classes, too: %v", report.Room)
	}
}

// TestRoomThatNobodyTells: which piece is missing for the scheduler to know where there is room. Catches advice to publish where
// nobody would ask, and where there is nothing to publish for.
func TestRoomThatNobodyTells(t *testing.T) {
	driver := func(asks *bool) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: kit.DriverName}, Spec: storagev1.CSIDriverSpec{StorageCapacity: asks}}
	}
	const none = "No CSIStorageCapacity object is about StorageClass fast, and as CSIDriver tandem.csi.example has storageCapacity: true, the scheduler chooses no node for the pod; "
	const unasked = "The scheduler chooses nodes without asking where there is room: CSIDriver tandem.csi.example "
	zone := []kube.Object{kit.Node("n1", map[string]string{"zone": "a"}), kit.CSINode("n1", "zone")}
	for _, c := range []struct {
		name    string
		objects []kube.Object
		denied  bool
		want    string
	}{
		{"no CSIDriver", nil, false, unasked + "does not exist."},
		{"no storageCapacity", []kube.Object{driver(nil)}, false, unasked + "does not have storageCapacity: true."},
		{"storageCapacity: false, though objects are there", []kube.Object{driver(kit.Ptr(false)), capacityObject("c1", "a", "9Gi", "")}, false, unasked + "does not have storageCapacity: true."},
		{"nothing published", append(zone, driver(kit.Ptr(true))), false, none + "--enable-capacity of the provisioner publishes such objects."},
		{"nothing to publish for", []kube.Object{driver(kit.Ptr(true))}, false, none + `there is nothing to publish: no CSINode lists driver "tandem.csi.example": see`},
		{"published", append(zone, driver(kit.Ptr(true)), capacityObject("c1", "a", "9Gi", "")), false, ""},
		{"not for the reader", nil, true, "No CSIStorageCapacity object is about StorageClass fast. Where CSIDriver tandem.csi.example has storageCapacity: true,"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.Claim("data"), kit.Class(kit.ClassName, kit.WaitForConsumer))
			h.Put(c.objects...)
			if c.denied {
				h.API.Deny("get", "csidrivers")
			}
			report := explainClaim(t, h, askedDriver(placed()))
			var told []string
			for _, note := range report.Notes {
				if strings.Contains(note, "CSIDriver") {
					told = append(told, note)
				}
			}
			if want := c.want; len(told) > 1 || want != "" && (len(told) == 0 || !strings.HasPrefix(told[0], want)) || want == "" && len(told) > 0 {
				t.Errorf("told %q, want %q", told, want)
			}
			for _, m := range report.Machines {
				if doubts := strings.Join(m.Doubts, " "); strings.Contains(doubts, "csidrivers") {
					t.Errorf("what was not read is blamed on a machine: %s", doubts)
				}
			}
		})
	}
}

// TestRoomOfTheNode marks the segment that counts once the scheduler has chosen.
func TestRoomOfTheNode(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.Claim("data", kit.OnNode("n1")), kit.Class(kit.ClassName, kit.WaitForConsumer), kit.Node("n1", map[string]string{"zone": "b"}),
		kit.CSINode("n1", "zone"), capacityObject("c1", "a", "9Gi", ""), capacityObject("c2", "b", "0", ""))
	room := explainClaim(t, h, askedDriver(placed())).Room
	if len(room) != 2 || room[0].Selected || !room[1].Selected || room[1].Fits {
		t.Errorf("the selected node's segment: %+v", room)
	}
}

// TestSidecars: who works for the driver is what its lease says, and one that nobody renews says that nobody does.
func TestSidecars(t *testing.T) {
	lease := func(holder string, age time.Duration) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "csi", Name: wellknown.SanitizeLease(kit.DriverName)}}
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &holder, kit.Ptr[int32](15)
		l.Spec.RenewTime = kit.Ptr(metav1.NewMicroTime(kit.Start.Add(-age)))
		return l
	}
	for want, l := range map[string]*coordinationv1.Lease{
		"pod-1 works: it has lease csi/tandem-csi-example":                                          lease("pod-1", time.Second),
		"nobody works: lease csi/tandem-csi-example was renewed 3h ago for the last time, by pod-1": lease("pod-1", 3*time.Hour),
		"nobody works: lease csi/tandem-csi-example has no holder":                                  lease("", time.Second),
	} {
		h := kit.New(t)
		h.Put(kit.Claim("data"), kit.Class(kit.ClassName), l)
		if got := explainClaim(t, h, askedDriver(flat())).Driver.Sidecars; len(got) != 1 || got[0] != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
