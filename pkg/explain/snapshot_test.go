// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/content"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volumesnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func ofSnapshot(step, says, advises string) expectation {
	return expectation{binder, wellknown.KindVolumeSnapshot, step, says, advises}
}

func ofContent(step, says, advises string) expectation {
	return expectation{snapshotter, kindContent, step, says, advises}
}

// source is a bound claim and its volume.
func sourceOf(driver string) []kube.Object {
	c := kit.Claim("data", kit.BoundTo("pv"))
	return []kube.Object{c, kit.Volume("pv", kit.ClaimedBy(c), func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = driver })}
}

func with(objects []kube.Object, more ...kube.Object) []kube.Object { return append(objects, more...) }

// TestSnapshots goes through what snapshots typically wait for, and lets the room say the same.
func TestSnapshots(t *testing.T) {
	class := kit.SnapshotClass(kit.SnapshotClassName)
	plain := kit.Snapshot("monday", "data")
	imported := kit.Snapshot("monday", "", kit.FromContent("given"))
	name := wellknown.ContentName(string(plain.UID))
	deleted := kit.With(kit.Snapshot("monday", "data", kit.BoundContent(name)),
		kit.Finalizers(wellknown.FinalizerSnapshotSource, wellknown.FinalizerSnapshotBound), kit.Deleted)
	taken := kit.Content(deleted, "vol", kit.Taken("snap-1"), func(c *kube.Content) { c.Name = name })
	for _, c := range []struct {
		name    string
		objects []kube.Object
		want    expectation
	}{
		{"all is well", with(sourceOf(kit.DriverName), class, plain), ofSnapshot("CreateContent", "nothing is in the way", "")},
		{"class of another driver", with(sourceOf(kit.DriverName), plain,
			kit.SnapshotClass(kit.SnapshotClassName, func(c *snapv1.VolumeSnapshotClass) { c.Driver = "other" })),
			ofSnapshot("Wait", "snapshot of another driver", "--driver-name=other")},
		{"claim of another driver", with(sourceOf("other"), class, plain),
			ofSnapshot("Reject", `volume pv is of driver "other"`, "name a VolumeSnapshotClass of driver other")},
		{"claim missing", []kube.Object{class, plain}, ofSnapshot("Reject", "cannot get claim from snapshot", "there is no claim data in namespace default: create it")},
		{"claim not bound", []kube.Object{class, plain, kit.Claim("data")},
			ofSnapshot("Reject", "is not yet bound to a PV", "provisioner explain -n default data")},
		{"misbound content", []kube.Object{imported, kit.NamedContent("given", func(c *kube.Content) {
			c.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: kit.Namespace, Name: "tuesday"}
		})}, ofSnapshot("Reject", "is bound to a different snapshot", "its spec.volumeSnapshotRef would have to be default/monday with UID")},
		{"waiting for a restore", []kube.Object{class, deleted, taken, kit.Claim("copy", kit.FromSnapshot("monday"))},
			ofSnapshot("WaitForRestore", "default/copy", "wait until they are bound")},
		{"going", []kube.Object{class, deleted, taken}, ofSnapshot("DeleteContent", "Deletes the content", "")},
		{"held by others", []kube.Object{class, kit.With(kit.Snapshot("monday", "data"), kit.Finalizers("a.example/b"), kit.Deleted)},
			ofSnapshot("Ignore", "held by others only", "see below who holds it")},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(c.objects...)
			m := c.want.check(t, explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Own))
			runBinding(h)
			sameWords(t, h, m.Event)
		})
	}
}

// TestStrangeSnapshots: what no driver can claim is explained where no status is written.
func TestStrangeSnapshots(t *testing.T) {
	h := kit.New(t)
	h.Put(with(sourceOf(kit.DriverName), kit.Snapshot("monday", "data"))...)
	h.Clock.SetTime(kit.Start.Add(strangerAge))
	m := ofSnapshot("Tell", `"snap" not found`, "create VolumeSnapshotClass snap").check(t, explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Own))
	runBinding(h)
	sameWords(t, h, m.Event)
}

// strangerAge is more than a snapshot of nobody is left to others.
const strangerAge = time.Minute

// TestContents goes through what contents wait for.
func TestContents(t *testing.T) {
	class := kit.SnapshotClass(kit.SnapshotClassName)
	s := kit.With(kit.Snapshot("monday", "data"), kit.Finalizers(wellknown.FinalizerSnapshotSource, wellknown.FinalizerSnapshotBound))
	name := wellknown.ContentName(string(s.UID))
	marked := kit.Content(s, "vol", func(c *kube.Content) {
		c.Name = name
		kube.SetAnnotation(c, wellknown.AnnBeingCreated, "yes")
	})
	notReady := kit.Content(s, "vol", kit.Taken("snap-1"), func(c *kube.Content) { c.Name, c.Status.ReadyToUse = name, kit.Ptr(false) })
	foreign := kit.Content(s, "vol", func(c *kube.Content) { c.Name, c.Spec.Driver = name, "other" })
	dying := kit.With(kit.Content(s, "vol", kit.Taken("snap-1"), func(c *kube.Content) { c.Name = name }), kit.Finalizers(wellknown.FinalizerContent), kit.Deleted)
	for _, c := range []struct {
		name    string
		objects []kube.Object
		want    expectation
	}{
		{"being created", with(sourceOf(kit.DriverName), class, s, marked), ofContent("Create", "Asks the driver for a snapshot named snapshot-", "")},
		{"not ready", with(sourceOf(kit.DriverName), class, s, notReady), ofContent("Poll", "asks whether snapshot snap-1 is ready", "")},
		{"of another driver", with(sourceOf(kit.DriverName), class, s, foreign), ofContent("Ignore", "content of another driver", "--driver-name=other")},
		{"deleted under a living snapshot", with(sourceOf(kit.DriverName), class, s, dying), ofContent("Ignore", "settled", "its data stays")},
		{"class gone", with(sourceOf(kit.DriverName), s, kit.Content(s, "vol", func(c *kube.Content) { c.Name = name })),
			ofContent("Record", `\"snap\" not found`, "create VolumeSnapshotClass snap again")},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(c.objects...)
			report := explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Own)
			c.want.check(t, report)
			open := strings.Contains(strings.Join(report.Notes, " "), "a create may be open")
			if open != (c.name == "being created") {
				t.Error(written(t, report, "text"))
			}
		})
	}
}

// TestDeletion: both machines and the request of a snapshot that goes, with its secret by name.
func TestDeletion(t *testing.T) {
	h := kit.New(t)
	name := wellknown.ContentName(string(kit.Snapshot("monday", "data").UID))
	s := kit.With(kit.Snapshot("monday", "data", kit.BoundContent(name)), kit.Deleted,
		kit.Finalizers(wellknown.FinalizerSnapshotSource, wellknown.FinalizerSnapshotBound))
	c := kit.With(kit.Content(s, "vol", kit.Taken("snap-1"), func(c *kube.Content) {
		c.Name = name
		kube.SetAnnotation(c, wellknown.AnnSnapshotDeletionSecretName, "creds")
		kube.SetAnnotation(c, wellknown.AnnSnapshotDeletionSecretNamespace, kit.Namespace)
	}), kit.Finalizers(wellknown.FinalizerContent), kit.Deleted)
	h.Put(s, c, kit.SnapshotClass(kit.SnapshotClassName))
	report := explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Own)
	ofSnapshot("Ignore", "waiting until its content is gone", "see below").check(t, report)
	ofContent("Delete", "Asks the driver to delete snapshot snap-1", "").check(t, report)
	golden(t, "deletion.txt", written(t, report, "text"))
}

// TestStance: who binds is told, and what would be done without the other binder.
func TestStance(t *testing.T) {
	h := kit.New(t)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: wellknown.BinderLease}}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = kit.Ptr("rival"), kit.Ptr(metav1.NewMicroTime(kit.Start))
	h.Put(with(sourceOf(kit.DriverName), kit.SnapshotClass(kit.SnapshotClassName), kit.Snapshot("monday", "data"), lease)...)
	report := explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Auto)
	m := ofSnapshot("CreateContent", "nothing is in the way", "").check(t, report)
	if len(m.Object.State) != 1 || !strings.Contains(m.Object.State[0].Value, "lease kube-system/snapshot-controller-leader is held by rival") {
		t.Error(written(t, report, "text"))
	}
	report = explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.None)
	ofSnapshot("", "--bind-snapshots=none leaves the binding", "snapshot-controller").check(t, report)
	h.Put(kit.CSINode("n1", zone))
	report = explainSnapshot(t, h, Driver{Why: "--csi-address is empty"}, volumesnapshot.All)
	if ofSnapshot("CreateContent", "nothing is in the way", "").check(t, report); report.Driver.Name != kit.DriverName {
		t.Error(report.Driver)
	}
	rooms := Snapshotter{Content: *content.NewOptions(), Binding: *volumesnapshot.NewOptions()}
	if _, err := Snapshot(h.Ctx, setting(h, askedDriver(flat())), rooms, kit.Namespace, "nope"); err == nil {
		t.Error("a snapshot that does not exist was explained")
	}
}
