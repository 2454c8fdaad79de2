// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volumesnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

var unknown = Driver{Why: "there is no socket"}

// TestDriverOfSnapshots: a snapshot has to be of its claim's driver. Catches an explanation that offers another driver's class, which is
// refused, and one that says of a status that somebody writes it where there is nobody.
func TestDriverOfSnapshots(t *testing.T) {
	h := kit.New(t)
	h.Put(with(sourceOf("real.example"), kit.Snapshot("monday", "data"), kit.CSINode("n1", zone),
		kit.SnapshotClass(kit.SnapshotClassName, func(c *snapv1.VolumeSnapshotClass) { c.Driver = "reel.example" }))...)
	h.Put(kit.With(kit.Snapshot("monday", "data"), kit.Finalizers(wellknown.FinalizerSnapshotSource, wellknown.FinalizerSnapshotBound)))
	m := ofSnapshot("Reject", "would say so in the status: ",
		"claim data is of driver real.example: correct VolumeSnapshotClass snap if that is meant, kubectl patch volumesnapshotclass snap --type=merge -p '{\"driver\":\"real.example\"}', and the snapshot goes on by itself").
		check(t, explainSnapshot(t, h, unknown, volumesnapshot.Own))
	if why := strings.Join(m.Hindrances, ""); !strings.Contains(why, "nothing shows that anybody serves driver reel.example") {
		t.Error(why)
	}
	if advice := strings.Join(m.Advice, "; "); strings.Contains(advice, "of a driver that is here") {
		t.Error(advice)
	}
	kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "monday"}, func(s *snapv1.VolumeSnapshot) {
		s.Status = &snapv1.VolumeSnapshotStatus{Error: &snapv1.VolumeSnapshotError{Message: kit.Ptr("it is in the status")}}
	})
	ofSnapshot("Reject", "says so in the status, and looks again by itself: ", "claim data is of driver").check(t, explainSnapshot(t, h, unknown, volumesnapshot.Own))
}

// TestDriverOfSources: what is made from something has to be of the same driver.
func TestDriverOfSources(t *testing.T) {
	for _, c := range []struct {
		name  string
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{{"empty", kit.Claim("data"), true}, {"restored", kit.Claim("data", kit.FromSnapshot("monday")), false}} {
		h := kit.New(t)
		other := kit.CSINode("n1", zone)
		other.Spec.Drivers[0].Name = "else.example"
		h.Put(c.claim, kit.Class(kit.ClassName), other)
		l := newClaimLook(setting(h, unknown), Provisioner{})
		l.claim, l.Driver.Name = c.claim, kit.DriverName
		if got := strings.Contains(strings.Join(l.choices(drivers{here: []string{"else.example"}}), ""), "else.example"); got != c.want {
			t.Errorf("%s: offered %v", c.name, got)
		}
	}
}

// TestHeardOf: a sidecar without leader election has no lease, and shows by what it tells. Catches an answer that quotes the driver and
// says that nobody serves it.
func TestHeardOf(t *testing.T) {
	for _, c := range []struct {
		name, from string
		age        time.Duration
		want       bool
	}{
		{"of late", kit.DriverName, time.Minute, false}, {"of late, by a name with its pod", kit.DriverName + "_pod", time.Minute, false},
		{"long ago", kit.DriverName, time.Hour, true}, {"of somebody else", "persistentvolume-controller", time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.Claim("data"), kit.Class(kit.ClassName))
			data, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "data"})
			e := eventOf(h, "e1", data, c.age, "ProvisioningFailed", "rpc error: code = ResourceExhausted desc = full")
			e.Source.Component = c.from
			h.Put(e)
			if got := strings.Contains(written(t, explainClaim(t, h, unknown), "json"), "nothing shows that anybody"); got != c.want {
				t.Errorf("says that nobody serves the driver: %v", got)
			}
		})
	}
}

// TestHeardOfBesideALease: a lease that nobody holds says nothing of a sidecar that works without one. Catches an answer that says of a
// provisioner which spoke a minute ago that it does not run.
func TestHeardOfBesideALease(t *testing.T) {
	for _, c := range []struct {
		name    string
		renewed time.Duration
		holder  string
		want    bool
	}{
		{"given up long ago", time.Hour, "", false}, {"ended long ago", time.Hour, "pod-1", false},
		{"given up since", 30 * time.Second, "", true}, {"ended since", 50 * time.Second, "pod-1", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "csi", Name: wellknown.SanitizeLease(kit.DriverName)}}
			lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &c.holder, kit.Ptr[int32](15)
			lease.Spec.RenewTime = kit.Ptr(metav1.NewMicroTime(kit.Start.Add(-c.renewed)))
			h.Put(kit.Claim("data"), kit.Class(kit.ClassName), lease)
			data, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "data"})
			e := eventOf(h, "e1", data, time.Minute, "ProvisioningFailed", "rpc error: code = ResourceExhausted desc = full")
			e.Source.Component = kit.DriverName
			h.Put(e)
			report := explainClaim(t, h, unknown)
			if got := strings.Contains(strings.Join(report.Machines[0].Hindrances, " "), "does not run"); got != c.want {
				t.Errorf("says that it does not run: %v", got)
			}
			if got := strings.Contains(strings.Join(report.Driver.Sidecars, " "), "but one works without leader election"); got == c.want {
				t.Errorf("says that one works: %v", report.Driver.Sidecars)
			}
		})
	}
}

// TestOfferedDrivers: a CSIDriver object alone may be a sample. Catches an answer that offers classes of a driver that nobody runs.
func TestOfferedDrivers(t *testing.T) {
	h := kit.New(t)
	running := kit.CSINode("n1", zone)
	running.Spec.Drivers[0].Name = "real.example"
	h.Put(kit.Claim("data"), kit.Class(kit.ClassName), running, &storagev1.CSIDriver{ObjectMeta: meta1("sample.example")})
	if advice := strings.Join(explainClaim(t, h, unknown).Machines[0].Advice, "; "); !strings.HasSuffix(advice, "or use a class of a driver that is here: real.example") {
		t.Error(advice)
	}
}

// TestAttributesAreBlamed: parameters that a driver refuses may be those of either class.
func TestAttributesAreBlamed(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.Claim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = kit.Ptr("gold") }), kit.Class(kit.ClassName),
		&storagev1.VolumeAttributesClass{ObjectMeta: meta1("gold"), DriverName: kit.DriverName})
	data, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "data"})
	h.Put(eventOf(h, "e1", data, time.Minute, "ProvisioningFailed", "rpc error: code = InvalidArgument desc = no a"))
	report := explainClaim(t, h, unknown)
	if advice := strings.Join(report.Machines[0].Advice, "; "); !strings.Contains(advice, "with the parameters of StorageClass fast and those of VolumeAttributesClass gold") ||
		!strings.Contains(advice, "if those of gold are wrong, delete this claim and make one that names another") {
		t.Errorf("%s\n%s", advice, written(t, report, "text"))
	}
}

// TestNamespacesOfSecrets: a secret cannot be made in a namespace that is not there, and the API server's answer is the same for both.
func TestNamespacesOfSecrets(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*kit.Harness)
		want bool
	}{
		{"it is not there", func(*kit.Harness) {}, true},
		{"it is there", func(h *kit.Harness) { h.Put(&corev1.Namespace{ObjectMeta: meta1(kit.Namespace)}) }, false},
		{"it may not be read", func(h *kit.Harness) { h.API.Deny("get", "namespaces") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.Claim("data"), kit.Class(kit.ClassName, lost))
			c.edit(h)
			m := ofClaim("Reject", `secrets "lost" not found`, "create that secret").check(t, explainClaim(t, h, askedDriver(flat())))
			if got := strings.HasPrefix(m.Advice[0], "namespace default, in which the secret should be, does not exist"); got != c.want || len(m.Doubts) > 0 {
				t.Errorf("%q, doubts %q", m.Advice, m.Doubts)
			}
		})
	}
}

// TestSnapshotsThatHold: a claim that goes is held by snapshots that cannot be taken, and they are named where it says so.
func TestSnapshotsThatHold(t *testing.T) {
	h := kit.New(t)
	claim := kit.With(kit.Claim("data", kit.BoundTo("pv")), kit.Finalizers(wellknown.FinalizerSourceClaim), kit.Deleted)
	h.Put(claim, kit.Class(kit.ClassName), kit.Volume("pv", kit.ClaimedBy(claim)), kit.Snapshot("other", "elsewhere"),
		kit.With(kit.Snapshot("monday", "data"), kit.Finalizers(wellknown.FinalizerSnapshotSource)))
	report := explainClaim(t, h, askedDriver(flat()))
	if got := report.Holders[0].Lifted; !strings.HasSuffix(got, "; VolumeSnapshots that are not taken yet: monday. See why with snapshotter explain -n default monday, or delete them") {
		t.Errorf("%s", got)
	}
}

// TestContentWithoutSnapshot: a content that was kept is no way to a snapshot that is gone.
func TestContentWithoutSnapshot(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.NamedContent("given"))
	report := readOnly(t, h, func() (*Report, error) {
		return Content(h.Ctx, setting(h, askedDriver(flat())), Snapshotter{}, "given")
	})
	if got := report.Object.State[1].Value; !strings.Contains(got, "does not exist (any more): snapshotter import -n NAMESPACE NAME --content=given gives") {
		t.Error(got)
	}
}

// TestPlacesKnownFromEvents: away from the driver nothing shows that it has places when no CSINode lists it yet, and its provisioner waits for
// just that. Catches an explanation that goes on to the request, and says of the event that its cause is over.
func TestPlacesKnownFromEvents(t *testing.T) {
	const noKeys = `error generating accessibility requirements: no available topology found: no CSINode lists topology keys of driver "tandem.csi.example"; look whether the driver runs on any node`
	for _, c := range []struct {
		name, from, message string
		want                expectation
	}{
		{"told by its provisioner", kit.DriverName, noKeys, ofClaim("Reject", "no available topology found: no CSINode lists topology keys", "look whether the driver runs on any node and its nodes have their labels")},
		{"told by that of another driver", "other.example", noKeys, ofClaim("Create", "in the way", "look whether the driver runs on any node")},
		{"something else", kit.DriverName, "the size is odd", ofClaim("Create", "in the way: the provisioner could not go on when it last tried, 4m ago: the size is odd", "docs/operations.md")},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			data := kit.Claim("data")
			h.Put(data, kit.Class(kit.ClassName), kit.Node("n1", map[string]string{zone: "a"}), kit.CSINode("n1"))
			data, _ = kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(data))
			e := eventOf(h, "e1", data, 4*time.Minute, "ProvisioningFailed", c.message)
			e.Source.Component = c.from
			h.Put(e)
			report := explainClaim(t, h, Driver{Why: "there is no socket"})
			c.want.check(t, report)
			if text := written(t, report, "text"); strings.Contains(text, "over by now") || strings.Contains(text, "That places matter to the driver is known") != (c.want.step == "Reject") {
				t.Error(text)
			}
		})
	}
}
