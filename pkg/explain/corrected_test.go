// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volumesnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestCorrectedClass: parameters that the driver has refused for certain are read from the class again. Catches an explanation that shows those of
// the refused request, or says that nothing but a new snapshot helps, and one that promises the same of a request whose outcome is open.
func TestCorrectedClass(t *testing.T) {
	s := kit.With(kit.Snapshot("monday", "data"), kit.Finalizers(wellknown.FinalizerSnapshotSource, wellknown.FinalizerSnapshotBound))
	for _, c := range []struct {
		name, class, sends, advises string
		code                        string
		open                        bool
	}{
		{"not yet", "glod", "glod", "compare the words of the driver with what is asked for, and with the parameters of VolumeSnapshotClass snap, which can be corrected in place: kubectl edit volumesnapshotclass snap", "InvalidArgument", false},
		{"by now", "gold", "gold", "VolumeSnapshotClass snap says something else by now than what the driver has refused: the next try sends that; it comes by itself, or at once with kubectl annotate vsc ", "InvalidArgument", false},
		{"while the outcome is open", "gold", "glod", "is repeated by itself until the driver gives a certain answer", "DeadlineExceeded", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(with(sourceOf(kit.DriverName), s, kit.SnapshotClass(kit.SnapshotClassName, func(class *snapv1.VolumeSnapshotClass) {
				class.Parameters = map[string]string{"tier": c.class}
			}), kit.Content(s, "vol", func(content *kube.Content) {
				content.Name = wellknown.ContentName(string(s.UID))
				kube.SetAnnotation(content, wellknown.AnnSnapshotParameters, `{"tier":"glod"}`)
				if c.open {
					kube.SetAnnotation(content, wellknown.AnnBeingCreated, "yes")
				}
				content.Status = &snapv1.VolumeSnapshotContentStatus{Error: &snapv1.VolumeSnapshotError{Message: kit.Ptr("rpc error: code = " + c.code + " desc = no such tier")}}
			}))...)
			report := explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Own)
			m := ofContent("Create", "Asks the driver for a snapshot", c.advises).check(t, report)
			if m.Request.Parameters["tier"] != c.sends {
				t.Errorf("shows %v", m.Request.Parameters)
			}
			if got := strings.Contains(strings.Join(report.Notes, " "), "until then its parameters stay as they are on record"); got != c.open {
				t.Error(report.Notes)
			}
		})
	}
}

// TestDriverOfHandles: the driver of an imported snapshot cannot be changed. Catches an explanation that only asks to run a driver whose name is a slip.
func TestDriverOfHandles(t *testing.T) {
	imported := kit.Snapshot("monday", "", kit.FromContent("given"))
	for _, c := range []struct{ name, driver, meant string }{{"a slip", "tandem.csi.exmaple", kit.DriverName}, {"another one", "nodrv", "DRIVER"}} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(imported, kit.CSINode("n1", zone), kit.NamedContent("given", func(content *kube.Content) {
				content.Spec.Driver, content.Spec.Source.SnapshotHandle, content.Spec.VolumeSnapshotClassName = c.driver, kit.Ptr("snap-9"), nil
				content.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: kit.Namespace, Name: "monday", UID: imported.UID}
			}))
			advises := "if the snapshot is of another driver, that cannot be changed here: kubectl delete volumesnapshot -n default monday; " +
				"kubectl delete volumesnapshotcontent given --ignore-not-found; then snapshotter import -n default monday --handle=snap-9 --driver-name=" + c.meant + " --deletion-policy=Delete"
			ofSnapshot("Bind", nobodyServes+" driver "+c.driver, advises).check(t, explainSnapshot(t, h, unknown, volumesnapshot.Own))
			ofContent("Poll", nobodyServes+" driver "+c.driver, advises).check(t, readOnly(t, h, func() (*Report, error) {
				return Content(h.Ctx, setting(h, unknown), Snapshotter{}, "given")
			}))
		})
	}
}

// TestWhoseVolume: a volume outlives its claim. Catches a command that can only answer "not found", or tells of a claim that came after.
func TestWhoseVolume(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*kit.Harness)
		want string
	}{
		{"it is there", func(h *kit.Harness) { h.Put(kit.Claim("data", kit.BoundTo("pv"))) }, "default/data: provisioner explain -n default data"},
		{"it is gone", func(*kit.Harness) {}, "default/data, which does not exist (any more)"},
		{"another has its name", func(h *kit.Harness) {
			h.Put(kit.Claim("data", func(c *corev1.PersistentVolumeClaim) { c.UID = "another" }))
		}, "default/data, which does not exist (any more)"},
		{"it may not be read", func(h *kit.Harness) { h.API.Deny("get", "persistentvolumeclaims") }, "default/data: provisioner explain -n default data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.Volume("pv", kit.ClaimedBy(kit.Claim("data")), kit.Released))
			c.edit(h)
			report := readOnly(t, h, func() (*Report, error) {
				return Volume(h.Ctx, setting(h, askedDriver(flat())), Provisioner{}, "pv")
			})
			if got := report.Object.State[1]; got != (Fact{"claim", c.want}) {
				t.Errorf("%v, want %q", got, c.want)
			}
		})
	}
}

// TestChosenNode: the scheduler writes no event while it waits for the volume. Catches an explanation that sends its reader to a scheduler
// which has done its part.
func TestChosenNode(t *testing.T) {
	for _, c := range []struct {
		name  string
		claim *corev1.PersistentVolumeClaim
		want  string
	}{
		{"chosen", kit.Claim("data", kit.OnNode("n1")), "the scheduler has chosen node n1 for a pod of this claim, and waits for the claim's volume, of which it writes no event"},
		{"not yet", kit.Claim("data"), "no scheduler has said anything about it"},
		{"and bound since", kit.Claim("data", kit.OnNode("n1"), kit.BoundTo("pv")), "no scheduler has said anything about it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(c.claim, kit.Class(kit.ClassName, kit.WaitForConsumer), kit.Node("n1", nil), kit.CSINode("n1", zone), pod("a"))
			report := explainClaim(t, h, askedDriver(flat()))
			if len(report.Users) != 1 || len(report.Users[0].Why) == 0 || report.Users[0].Why[0] != c.want || len(report.Users[0].Advice) > 0 == (c.name == "chosen") {
				t.Errorf("%+v", report.Users)
			}
		})
	}
}

// TestBoundWithoutClass: of a claim that has its volume nothing depends on the class. Catches an explanation that does not know what is known.
func TestBoundWithoutClass(t *testing.T) {
	for _, c := range []struct {
		name    string
		objects []kube.Object
		want    expectation
		doubts  int
	}{
		{"bound", bound(), ofClaim("Ignore", "the claim has a volume", ""), 0},
		{"not bound", []kube.Object{kit.Claim("data")}, ofClaim("", "Not known: what is decided depends on the StorageClass", "ask somebody"), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(c.objects...)
			h.API.Deny("get", "storageclasses")
			report := explainClaim(t, h, askedDriver(flat()))
			if m := c.want.check(t, report); len(m.Doubts) != c.doubts {
				t.Error(m.Doubts)
			}
		})
	}
}

// TestLeasesUnread: that nobody is shown to work may be for want of a right.
func TestLeasesUnread(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.Claim("data"), kit.Class(kit.ClassName))
	const unread = "Which process works for the driver is not shown: listing leases: not allowed to you."
	release := h.API.Deny("list", "leases")
	if notes := strings.Join(explainClaim(t, h, unknown).Notes, " "); !strings.Contains(notes, unread) {
		t.Error(notes)
	}
	release()
	if notes := strings.Join(explainClaim(t, h, unknown).Notes, " "); strings.Contains(notes, unread) {
		t.Error(notes)
	}
}
