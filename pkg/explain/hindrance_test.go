// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

const zone = "topology.kubernetes.io/zone"

// in makes a class allow some values of a label.
func in(key string, values ...string) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) {
		c.AllowedTopologies = append(c.AllowedTopologies, corev1.TopologySelectorTerm{
			MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: key, Values: values}},
		})
	}
}

func zones() []kube.Object {
	return []kube.Object{
		kit.Node("n1", map[string]string{zone: "a"}), kit.CSINode("n1", zone), kit.Node("n2", map[string]string{zone: "b"}), kit.CSINode("n2", zone),
	}
}

// TestPlacesWithoutNode: of a class that fits no node the scheduler says neither which class it is nor what is wrong with it.
// Catches an explanation that asks for a pod, which would wait like the claim, and one that finds nothing in the way.
func TestPlacesWithoutNode(t *testing.T) {
	late := kit.WaitForConsumer
	const change = "change allowedTopologies of StorageClass fast, which can be done in place: kubectl edit storageclass fast"
	for _, c := range []struct {
		name  string
		can   capability.Set
		claim *corev1.PersistentVolumeClaim
		class *storagev1.StorageClass
		want  expectation
	}{
		{"of a pod, before a driver is named", placed(), kit.Claim("data", unclaimed), kit.Class(kit.ClassName, late, in(zone, "x", "y")),
			ofClaim("", "fit no node, so that no pod that uses the claim finds a node: {topology.kubernetes.io/zone in (x, y)}; the nodes have {topology.kubernetes.io/zone: a} | {topology.kubernetes.io/zone: b}", change)},
		{"of a pod", placed(), kit.Claim("data"), kit.Class(kit.ClassName, late, in(zone, "x")), ofClaim("Ignore", "in the way: allowedTopologies of StorageClass fast fit no node", change)},
		{"of a pod, whatever the driver can do", flat(), kit.Claim("data"), kit.Class(kit.ClassName, late, in(zone, "x")), ofClaim("Ignore", "fit no node", change)},
		{"with a slip in the key", placed(), kit.Claim("data"), kit.Class(kit.ClassName, late, in("topology.kubernets.io/zone", "a")),
			ofClaim("Ignore", "no node has a label topology.kubernets.io/zone (did you mean topology.kubernetes.io/zone?); the nodes have {topology.kubernetes.io/zone: a}", "the driver's keys are topology.kubernetes.io/zone")},
		{"with a key of nobody", placed(), kit.Claim("data"), kit.Class(kit.ClassName, in("rack", "a")),
			ofClaim("Create", "fit no node, so that the driver is asked for a place where no node is: {rack in (a)}; no node has a label rack; the nodes have", change)},
		{"immediately", placed(), kit.Claim("data"), kit.Class(kit.ClassName, in(zone, "x")), ofClaim("Create", "in the way: allowedTopologies", change)},
		{"immediately, and nobody minds", flat(), kit.Claim("data"), kit.Class(kit.ClassName, in(zone, "x")), ofClaim("Create", "nothing is in the way", "")},
		{"a term without meaning", placed(), kit.Claim("data"), kit.Class(kit.ClassName, late, func(c *storagev1.StorageClass) {
			c.AllowedTopologies = []corev1.TopologySelectorTerm{{}}
		}), ofClaim("Ignore", "fit no node, so that no pod that uses the claim finds a node: {}", change)},
		{"one term fits", placed(), kit.Claim("data"), kit.Class(kit.ClassName, late, in(zone, "x"), in(zone, "b")), ofClaim("Ignore", "the claim waits for its first consumer", "start a pod")},
		{"the scheduler has found one", placed(), kit.Claim("data", kit.OnNode("n1")), kit.Class(kit.ClassName, late, in(zone, "a")), ofClaim("Create", "nothing is in the way", "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(zones()...)
			h.Put(c.claim, c.class)
			m := c.want.check(t, explainClaim(t, h, askedDriver(c.can)))
			if advice := strings.Join(m.Advice, " "); strings.Contains(c.want.advises, "allowedTopologies") && strings.Contains(advice, "start a pod") {
				t.Errorf("a pod would wait too: %s", advice)
			}
		})
	}
	t.Run("a slip beside a term that fits", func(t *testing.T) {
		h := kit.New(t)
		h.Put(zones()...)
		h.Put(kit.Claim("data"), kit.Class(kit.ClassName, late, in(zone, "a"), in(zone+"s", "b")))
		if notes := strings.Join(explainClaim(t, h, askedDriver(placed())).Notes, " "); !strings.Contains(notes, "No node has a label "+zone+"s, which allowedTopologies of StorageClass fast name (did you mean "+zone+"?)") {
			t.Error(notes)
		}
	})
	t.Run("nodes that may not be read", func(t *testing.T) {
		h := kit.New(t)
		h.Put(zones()...)
		h.Put(kit.Claim("data"), kit.Class(kit.ClassName, late, in(zone, "x")))
		h.API.Deny("list", "nodes")
		m := ofClaim("Ignore", "waits for its first consumer", "start a pod").check(t, explainClaim(t, h, askedDriver(placed())))
		if len(m.Hindrances) > 0 || len(m.Doubts) != 1 {
			t.Errorf("what may not be read is taken for certain: %v, %v", m.Hindrances, m.Doubts)
		}
	})
}

// TestFailures: what the driver has said is on record in the events only. Catches an explanation that says of a claim which
// was refused a minute ago that nothing is in the way.
func TestFailures(t *testing.T) {
	const fail = "failed to provision volume with StorageClass \"fast\": "
	answer := func(code string) string { return fail + "rpc error: code = " + code + " desc = it is so" }
	from := func(program string) func(*corev1.Event) {
		return func(e *corev1.Event) { e.Source.Component = program }
	}
	for _, c := range []struct {
		name, reason, message string
		edit                  func(*corev1.Event)
		want                  expectation
	}{
		{"no room", "ProvisioningFailed", answer("ResourceExhausted"), nil, ofClaim("Create", "in the way: the driver has answered, 4m ago: "+answer("ResourceExhausted"), "allow other places in StorageClass fast")},
		{"parameters", "ProvisioningFailed", answer("InvalidArgument"), nil, ofClaim("Create", "in the way: the driver has answered", "compare the words of the driver with the parameters of StorageClass fast")},
		{"credentials", "ProvisioningFailed", answer("Unauthenticated"), nil, ofClaim("Create", "in the way: the driver has answered", "the secret that StorageClass fast names")},
		{"open", "ProvisioningFailed", answer("DeadlineExceeded"), nil, ofClaim("Create", "in the way: the driver had not answered in time, 4m ago", "look at the log of the driver")},
		{"open, and what it was made from is not there any more", "ProvisioningFailed", answer("DeadlineExceeded") + "; " + provision.Outdated + "so it is; delete this claim and make it anew", nil,
			ofClaim("Create", "in the way: the driver had not answered in time, 4m ago: "+answer("DeadlineExceeded"), provision.Outdated+"so it is; delete this claim and make it anew")},
		{"nobody listens", "ProvisioningFailed", fail + `rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /csi/csi.sock: connect: no such file or directory"`, nil,
			ofClaim("Create", "in the way: the provisioner could not reach the driver, 4m ago", "see that the container of the driver runs")},
		{"not of the driver", "ProvisioningFailed", "created volume capacity 1 less than requested capacity 2", nil, ofClaim("Create", "in the way: the provisioner could not go on when it last tried, 4m ago: created volume capacity 1 less than requested capacity 2",
			"docs/operations.md says what helps against that; when that is done: it is tried again by itself, after 5m at the latest, or at once with kubectl annotate pvc -n default data")},
		{"not of the driver, with a remedy", "ProvisioningFailed", "the size is odd; ask for another size; in a new claim", nil, ofClaim("Create", "in the way: the provisioner could not go on when it last tried, 4m ago: the size is odd",
			"ask for another size; in a new claim; when that is done: it is tried again")},
		{"not of the driver, with a remedy that says when", "ProvisioningFailed", "no secret; make it, or at once with kubectl annotate x " + wellknown.AnnRetry, nil,
			ofClaim("Create", "4m ago: no secret", "make it, or at once with kubectl annotate x "+wellknown.AnnRetry)},
		{"not of a provisioner", "ProvisioningFailed", `storageclass "fast" not found`, from("persistentvolume-controller"), ofClaim("Create", "nothing is in the way", "")},
		{"about something else", "TopologyIgnored", "the class has none", nil, ofClaim("Create", "nothing is in the way", "")},
		{"no failure", "ProvisioningFailed", "waiting", func(e *corev1.Event) { e.Type = "Normal" }, ofClaim("Create", "nothing is in the way", "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			data := kit.Claim("data")
			h.Put(data, kit.Class(kit.ClassName))
			data, _ = kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(data))
			e := eventOf(h, "e1", data, 4*time.Minute, c.reason, c.message)
			if c.edit != nil {
				c.edit(e)
			}
			h.Put(eventOf(h, "e0", data, time.Hour, "Older", "an older one"), e)
			c.want.check(t, explainClaim(t, h, askedDriver(flat())))
		})
	}
}

// TestOutdatedRequestIsTold: what would be decided about the claim as it is now is not what comes next, since an earlier request is repeated
// first. Catches an explanation that has only what the next request would lack, and not what helps now.
func TestOutdatedRequestIsTold(t *testing.T) {
	const out = provision.Outdated + "so it is; delete this claim and make it anew"
	for _, code := range []string{"Internal", "NotFound"} {
		for _, c := range []struct {
			step  string
			claim *corev1.PersistentVolumeClaim
			class []kube.Object
		}{
			{"Reject", kit.Claim("data"), nil},
			{"Reschedule", kit.Claim("data", kit.OnNode("gone")), []kube.Object{kit.Class(kit.ClassName, kit.WaitForConsumer)}},
		} {
			t.Run(c.step+" "+code, func(t *testing.T) {
				h := kit.New(t)
				h.Put(zones()...)
				h.Put(c.claim)
				h.Put(c.class...)
				data, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(c.claim))
				h.Put(eventOf(h, "e1", data, time.Minute, "ProvisioningFailed", "rpc error: code = "+code+" desc = no; "+out))
				m := ofClaim(c.step, "", out).check(t, explainClaim(t, h, askedDriver(placed())))
				if len(m.Hindrances) != 1 || !strings.Contains(m.Hindrances[0], "repeats the very same one before") {
					t.Error(m.Hindrances)
				}
			})
		}
	}
}

// TestAnswersOfDrivers: every code has advice that is whole, with the class in it where it is about the class.
func TestAnswersOfDrivers(t *testing.T) {
	for code := range answers {
		got := adviseAnswer("x: rpc error: code = "+code+" desc = y", "StorageClass fast")
		if strings.Contains(got, "%!") || !strings.Contains(got, "StorageClass fast") {
			t.Errorf("%s: %s", code, got)
		}
	}
	for _, open := range []string{"rpc error: code = Aborted desc = ", "rpc error: code = Unheard desc = ", "what?"} {
		if got := adviseAnswer(open, "c"); !strings.Contains(got, "is repeated by itself") {
			t.Errorf("%s: %s", open, got)
		}
	}
}

// TestNobodyServes: a driver of which the cluster shows no trace does nothing, however right the claim is. What may not be
// read, or proves nothing, is not taken for that.
func TestNobodyServes(t *testing.T) {
	lease := func(age time.Duration) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "csi", Name: wellknown.SanitizeLease(kit.DriverName)}}
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = kit.Ptr("pod-1"), kit.Ptr[int32](15), kit.Ptr(metav1.NewMicroTime(kit.Start.Add(-age)))
		return l
	}
	other := kit.CSINode("n1", zone)
	other.Spec.Drivers[0].Name = "tandem.csi.exmaple"
	late := kit.Class(kit.ClassName, kit.WaitForConsumer)
	const nobody = "in the way: nothing shows that anybody serves driver tandem.csi.example: there is no lease tandem-csi-example in any namespace, no CSIDriver object of that name, and no CSINode lists it"
	for _, c := range []struct {
		name    string
		objects []kube.Object
		deny    string
		want    expectation
	}{
		{"no trace", nil, "", ofClaim("Create", nobody, "run driver tandem.csi.example with the provisioner beside it, as deploy/provisioner does")},
		{"a slip", []kube.Object{other}, "", ofClaim("Create", nobody, "if driver tandem.csi.exmaple is meant: name a class of that driver")},
		{"no trace, and no pod", []kube.Object{late}, "", ofClaim("Ignore", nobody, "start a pod")},
		{"it is on a node", []kube.Object{kit.CSINode("n1")}, "", ofClaim("Create", "nothing is in the way", "")},
		{"it is announced", []kube.Object{&storagev1.CSIDriver{ObjectMeta: meta1(kit.DriverName)}}, "", ofClaim("Create", "nothing is in the way", "")},
		{"it works", []kube.Object{lease(0)}, "", ofClaim("Create", "nothing is in the way", "")},
		{"it has ended", []kube.Object{lease(time.Hour)}, "", ofClaim("Create", "in the way: the provisioner of driver tandem.csi.example does not run: nobody works: lease csi/tandem-csi-example was renewed 60m ago", "whether its pods are there and run")},
		{"nodes that may not be read", nil, "csinodes", ofClaim("Create", "nothing is in the way", "")},
		{"leases that may not be read", nil, "leases", ofClaim("Create", "nothing is in the way", "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.Claim("data"))
			if len(c.objects) == 0 || c.objects[0] != kube.Object(late) {
				h.Put(kit.Class(kit.ClassName))
			}
			h.Put(c.objects...)
			if c.deny != "" {
				h.API.Deny("list", c.deny)
			}
			report := explainClaim(t, h, Driver{Why: "there is no socket"})
			m := c.want.check(t, report)
			noted := strings.Contains(strings.Join(report.Notes, " "), "No lease says")
			if len(m.Hindrances) > 0 && noted {
				t.Errorf("it is said twice: %v", report.Notes)
			}
		})
	}
}
