// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volumesnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

const nobodyServes = "nothing shows that anybody serves"

// elsewhere is an event about something else.
func elsewhere(h *kit.Harness, from string) *corev1.Event {
	e := eventOf(h, "far", kit.Claim("other"), time.Minute, "ProvisioningSucceeded", "done")
	e.ReportingController, e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name = from, kindClaim, "team-b", "other"
	return e
}

// TestTraces: a sidecar without leader election, beside a driver that is on no node yet, leaves a record and events. Catches an explanation that
// says of a sidecar which has been overtaken that there is none, and sends its reader to run one.
func TestTraces(t *testing.T) {
	record := func(name string) kube.Object {
		c := &corev1.ConfigMap{ObjectMeta: meta1(name)}
		c.Namespace = "csi"
		return c
	}
	for _, c := range []struct {
		name, deny string
		put        func(*kit.Harness) kube.Object
		want       string
	}{
		{"a record", "", func(*kit.Harness) kube.Object { return record(kit.DriverName + "-attempts-0") }, "A provisioner of driver tandem.csi.example has been here: its record of open attempts is ConfigMap csi/tandem.csi.example-attempts-0"},
		{"the record of another", "", func(*kit.Harness) kube.Object { return record("other.example-attempts-0") }, ""},
		{"a record that may not be read", "configmaps", func(*kit.Harness) kube.Object { return record(kit.DriverName + "-attempts-0") }, ""},
		{"an event", "", func(h *kit.Harness) kube.Object { return elsewhere(h, kit.DriverName) }, "it has told something of PersistentVolumeClaim team-b/other, 60s ago. Whether it still works, or has been overtaken by another, its log and /readyz say"},
		{"an event of another", "", func(h *kit.Harness) kube.Object { return elsewhere(h, "other.example") }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.Claim("data"), kit.Class(kit.ClassName), c.put(h))
			if c.deny != "" {
				h.API.Deny("list", c.deny)
			}
			report := explainClaim(t, h, unknown)
			notes, hindered := strings.Join(report.Notes, " "), strings.Join(report.Machines[0].Hindrances, " ")
			if !strings.Contains(notes, c.want) || strings.Contains(hindered, nobodyServes) != (c.want == "") || strings.Contains(notes, "has been here") != (c.want != "") {
				t.Errorf("notes %s\nin the way: %s", notes, hindered)
			}
		})
	}
}

// TestTracesOfSnapshotters: the status of the very snapshot is a sign of who wrote it. Catches an explanation that says "nobody" four seconds
// after that, and one that takes the write of another program for ours.
func TestTracesOfSnapshotters(t *testing.T) {
	for _, c := range []struct {
		name, manager, component string
		age                      time.Duration
		want                     bool
	}{
		{"its status", "snapshotter", "", time.Second, false}, {"its status long ago", "snapshotter", "", time.Hour, true},
		{"a status of another program", "kubectl", "", time.Second, true},
		{"an event", "", "csi-snapshotter " + kit.DriverName, 0, false}, {"an event of the provisioner", "", kit.DriverName, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(with(sourceOf(kit.DriverName), kit.SnapshotClass(kit.SnapshotClassName), kit.Snapshot("monday", "data", func(s *snapv1.VolumeSnapshot) {
				s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: c.manager, Subresource: "status", Time: kit.Ptr(metav1.NewTime(kit.Start.Add(-c.age)))}}
			}))...)
			if c.component != "" {
				h.Put(elsewhere(h, c.component))
			}
			why := strings.Join(explainSnapshot(t, h, unknown, volumesnapshot.Own).Machines[0].Hindrances, " ")
			if got := strings.Contains(why, nobodyServes); got != c.want {
				t.Error(why)
			}
		})
	}
}

// TestSilence: a provisioner that waits for rights, or for its driver, takes no lease and tells nobody but its log. Catches an explanation that
// says of a claim which nobody has touched for minutes that nothing is in the way.
func TestSilence(t *testing.T) {
	const silence = "in the way: no provisioner has told anything of the claim in 4m"
	for _, c := range []struct {
		name  string
		after time.Duration
		edit  func(*kit.Harness, *corev1.PersistentVolumeClaim)
		want  expectation
	}{
		{"for long", 4 * time.Minute, nil, ofClaim("Create", silence, "look at the log and /readyz of the provisioner of driver "+kit.DriverName)},
		{"for a moment", time.Second, nil, ofClaim("Create", "nothing is in the way", "")},
		{"it has begun", 4 * time.Minute, func(h *kit.Harness, c *corev1.PersistentVolumeClaim) {
			e := eventOf(h, "e1", c, time.Minute, "Provisioning", "it is")
			e.Type, e.Source.Component = corev1.EventTypeNormal, kit.DriverName
			h.Put(e)
		}, ofClaim("Create", "nothing is in the way", "")},
		{"events may not be read", 4 * time.Minute, func(h *kit.Harness, _ *corev1.PersistentVolumeClaim) { h.API.Deny("list", "events") }, ofClaim("Create", "nothing is in the way", "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.Claim("data"), kit.Class(kit.ClassName))
			data, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "data"})
			h.Clock.SetTime(kit.Start.Add(c.after))
			if c.edit != nil {
				c.edit(h, data)
			}
			c.want.check(t, explainClaim(t, h, askedDriver(flat())))
		})
	}
}

// TestUntouched: a binder without the right to bind leaves it to others, and nothing at the snapshot says so. Catches an explanation that says
// of a snapshot which nobody has touched for minutes, or which cannot go, that nothing is in the way.
func TestUntouched(t *testing.T) {
	const nobody = "in the way: nobody has done this in 4m"
	class := kit.SnapshotClass(kit.SnapshotClassName)
	settled := kit.With(kit.Snapshot("monday", "data"), kit.Finalizers("a.example/b"), kit.Deleted)
	for _, c := range []struct {
		name    string
		after   time.Duration
		objects []kube.Object
		want    expectation
	}{
		{"new", 4 * time.Minute, []kube.Object{kit.Snapshot("monday", "data")}, ofSnapshot("CreateContent", nobody, "name the rights that it lacks, which deploy/pair/binding.yaml has")},
		{"going", 4 * time.Minute, []kube.Object{kit.With(kit.Snapshot("monday", "data"), kit.Finalizers(wellknown.FinalizerSnapshotSource), kit.Deleted)}, ofSnapshot("Release", nobody, "deploy/pair/binding.yaml")},
		{"for a moment", time.Second, []kube.Object{kit.Snapshot("monday", "data")}, ofSnapshot("CreateContent", "nothing is in the way", "")},
		{"with nothing to do", 4 * time.Minute, []kube.Object{settled}, ofSnapshot("Ignore", "held by others only", "see below")},
		{"its class was changed just now", 4 * time.Minute, []kube.Object{kit.Snapshot("monday", "data"), kit.SnapshotClass(kit.SnapshotClassName, func(c *snapv1.VolumeSnapshotClass) {
			c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: kit.Ptr(metav1.NewTime(kit.Start.Add(4 * time.Minute)))}}
		})}, ofSnapshot("CreateContent", "nothing is in the way", "")},
		{"a default class was made just now", 4 * time.Minute, []kube.Object{kit.Snapshot("monday", "data", func(s *snapv1.VolumeSnapshot) { s.Spec.VolumeSnapshotClassName = nil }),
			kit.SnapshotClass("gold", func(c *snapv1.VolumeSnapshotClass) {
				kube.SetAnnotation(c, wellknown.AnnIsDefaultSnapshotClass, "true")
				c.CreationTimestamp = metav1.NewTime(kit.Start.Add(4 * time.Minute))
			})}, ofSnapshot("CreateContent", "nothing is in the way", "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(with(sourceOf(kit.DriverName), class)...)
			h.Put(c.objects...)
			h.Clock.SetTime(kit.Start.Add(c.after))
			m := c.want.check(t, explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Own))
			if !strings.Contains(c.want.says, nobody) && len(m.Hindrances) > 0 {
				t.Error(m.Hindrances)
			}
		})
	}
}
