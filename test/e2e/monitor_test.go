// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// impatient lets tries follow each other so closely that a film of seconds has many.
var impatient = []string{"--retry-interval-start=200ms", "--retry-interval-max=500ms"}

// filmed is a world whose processes serve metrics.
func filmed(t *testing.T, s setup) (*world, map[string]string) {
	t.Helper()
	addresses := map[string]string{"provisioner": freeAddress(t), "snapshotter": freeAddress(t)}
	s.provisioner = slices.Concat(s.provisioner, impatient, []string{"--http-endpoint=" + addresses["provisioner"]})
	s.snapshotter = slices.Concat(s.snapshotter, impatient, []string{"--http-endpoint=" + addresses["snapshotter"]})
	return begin(t, s), addresses
}

// TestMonitoring stages what alerts are for, takes films of what both programs show of it, and lets test/monitoring evaluate the
// alerts and the dashboard of deploy/monitoring on them with the engine of Prometheus. With CSI_TANDEM_FILMS the films are kept.
//
// It has the cluster for itself: a snapshot of another test that nobody can bind, since its class is missing, waits in the eyes of every
// snapshotter.
func TestMonitoring(t *testing.T) {
	dir := cmp.Or(os.Getenv("CSI_TANDEM_FILMS"), t.TempDir())
	calm := filmCalm(t, dir)
	films := []*film{filmRefused(t, dir), filmFailing(t, dir), filmTight(t, dir), filmStandby(t, dir)}
	standby := films[3]
	shootAll(films, 12*time.Second)
	standby.snapshotter.Kill()
	shootAll(films, 4*time.Second)
	standby.mustNot(standby.snapshotter.Restart())
	calm.checkTable(films)
	evaluate(t, dir)
}

// filmCalm is a film in which nothing is wrong: pictures are taken whenever a life has ended well, so that it does not matter how slow the machine is.
func filmCalm(t *testing.T, dir string) *film {
	w, addresses := filmed(t, setup{name: "monitored-calm", provisioner: electing, snapshotter: electing})
	class, snapshots := w.class("class"), w.snapshotClass("delete")
	f := w.newFilm(dir, "calm", addresses)
	f.still = 0
	atRest := func() (bool, string) {
		for _, address := range addresses {
			metrics := w.scrape(address)
			if len(metrics["csi_tandem_oldest_pending_seconds"].GetMetric()) > 0 || len(metrics["leader_election_master_status"].GetMetric()) == 0 {
				return false, metrics["csi_tandem_oldest_pending_seconds"].String()
			}
			for _, lease := range metrics["leader_election_master_status"].GetMetric() {
				if lease.GetGauge().GetValue() != 1 {
					return false, lease.String()
				}
			}
		}
		return true, ""
	}
	w.rule(w.script.Fail(w.ctx, control.On("CreateVolume").Times(1), codes.Unavailable))
	for _, name := range []string{"one", "two", "three"} {
		w.claim(name, class)
		volume := w.bound(name)
		w.snapshot(name, name, snapshots)
		w.ready(name)
		w.deleteSnapshot(name)
		w.snapshotGone(name)
		w.deleteClaim(name)
		w.volumeGone(volume.Name)
		w.await("all is at rest", atRest)
		for range 4 {
			f.shoot()
		}
	}
	return f
}

// filmFailing is a driver that makes nothing, deletes nothing and says nothing of its room.
func filmFailing(t *testing.T, dir string) *film {
	w, addresses := filmed(t, setup{
		name: "monitored-failing", provisioner: []string{"--enable-capacity", "--capacity-poll-interval=1s"},
		cast: func(w *world, roles *stage.Roles) {
			roles.Capacity, roles.Env = true, []string{"NAMESPACE=" + stage.Namespace, "POD_NAME=" + w.installation()}
			roles.Flags = append(roles.Flags, "--pools="+poolsFile(t, map[string]string{"z1": "100Gi", "z2": "100Gi"}))
		},
	})
	class, snapshots := w.class("class"), w.snapshotClass("delete")
	w.class("late", waiting)
	w.claim("data", class)
	w.bound("data")
	w.claim("old", class)
	w.bound("old")
	for _, name := range []string{"base", "leaving"} {
		w.snapshot(name, "data", snapshots)
		w.ready(name)
	}
	w.await("capacity is published", func() (bool, string) {
		return w.scrape(addresses["provisioner"]).count("csistoragecapacities_desired_current", nil) == 2, "not yet"
	})
	f := w.newFilm(dir, "failing", addresses, "CSITandemCapacityStale", "CSITandemDeletionFails/PersistentVolume", "CSITandemDeletionFails/VolumeSnapshotContent",
		"CSITandemDriverErrors", "CSITandemPendingLong/PersistentVolumeClaim", "CSITandemTerminating/VolumeSnapshot")
	f.shoot()
	for _, method := range []string{"CreateVolume", "DeleteVolume", "DeleteSnapshot", "GetCapacity"} {
		w.rule(w.script.Fail(w.ctx, control.On(method), codes.Internal))
	}
	w.claim("restored", class, fromSnapshot("base"))
	w.told("restored", "Internal")
	w.deleteClaim("old")
	w.deleteSnapshot("leaving")
	w.deleteSnapshot("base")
	t.Cleanup(func() { w.mustNot(w.script.Reset(w.ctx)) })
	return f
}

// filmTight is a driver that may have one call at a time, and has one that hangs; and a record in which somebody has written what
// the provisioner does not understand.
func filmTight(t *testing.T, dir string) *film {
	w, addresses := filmed(t, setup{name: "monitored-tight", provisioner: []string{"--max-parallel-calls=1"}})
	class := w.class("class")
	w.begun()
	const stranger = "0b5ce1d0-0000-4000-8000-000000000000"
	w.writeRecord(stranger, `"as a newer process writes it"`)
	t.Cleanup(func() { w.writeRecord(stranger, "null") })
	w.mustNot(w.provisioner.Restart())
	w.rule(w.script.Hang(w.ctx, control.On("CreateVolume"), 0))
	w.claim("stuck", class)
	w.awaitCalls("CreateVolume", 1)
	w.claim("behind", class)
	t.Cleanup(func() { w.mustNot(w.script.Reset(w.ctx)) })
	return w.newFilm(dir, "tight", addresses, "CSITandemOutcomeUnknown", "CSITandemPendingLong/PersistentVolumeClaim", "CSITandemThrottled")
}

// writeRecord puts a value, which is JSON, under a key of the provisioner's record.
func (w *world) writeRecord(key, value string) {
	w.Helper()
	body := []byte(fmt.Sprintf(`{"data":{%q:%s}}`, key, value))
	w.must(w.kube.CoreV1().ConfigMaps(stage.Namespace).Patch(w.ctx, w.driver+"-attempts-0", types.MergePatchType, body, metav1.PatchOptions{}))
}

// filmRefused is a cluster whose policy lets no PersistentVolume of the driver be made.
func filmRefused(t *testing.T, dir string) *film {
	w, addresses := filmed(t, setup{name: "monitored-refused"})
	w.repeats = 1000
	meta := metav1.ObjectMeta{Name: w.ns}
	policies, bindings := w.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies(), w.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	w.must(policies.Create(w.ctx, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionv1.Ignore),
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumes"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "!has(object.spec.csi) || object.spec.csi.driver != '" + w.driver + "'", Message: "not here"}},
	}}, metav1.CreateOptions{}))
	w.must(bindings.Create(w.ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: w.ns, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}, metav1.CreateOptions{}))
	allow := func() {
		w.mustNot(bindings.Delete(w.ctx, w.ns, metav1.DeleteOptions{}))
		w.mustNot(policies.Delete(w.ctx, w.ns, metav1.DeleteOptions{}))
	}
	t.Cleanup(allow)
	class := w.class("class")
	// The policy works a moment after it was made, which is not told.
	refused := ""
	w.await("a PersistentVolume is refused", func() (bool, string) {
		if refused == "" {
			name := freshName("refused")
			w.claim(name, class)
			refused = name
		}
		messages := strings.Join(w.messages(refused), "\n")
		if strings.Contains(messages, "Successfully provisioned") {
			w.deleteClaim(refused)
			refused = ""
		}
		return strings.Contains(messages, "not here"), messages
	})
	return w.newFilm(dir, "refused", addresses, "CSITandemPendingLong/PersistentVolumeClaim", "CSITandemWritesRefused")
}

// filmStandby is a provisioner whose lease somebody has who does not work, and later a snapshotter that is gone.
func filmStandby(t *testing.T, dir string) *film {
	w, addresses := filmed(t, setup{
		name: "monitored-standby", provisioner: electing, cast: func(w *world, _ *stage.Roles) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-csi-example", Namespace: stage.Namespace}}
			now := metav1.NowMicro()
			lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: ptr.To("somebody"), LeaseDurationSeconds: ptr.To(int32(3600)), AcquireTime: &now, RenewTime: &now}
			leases := w.kube.CoordinationV1().Leases(stage.Namespace)
			w.must(leases.Create(w.ctx, lease, metav1.CreateOptions{}))
			t.Cleanup(func() {
				w.mustNot(leases.Delete(context.WithoutCancel(t.Context()), lease.Name, metav1.DeleteOptions{}))
			})
		},
	})
	w.await("the provisioner stands by", func() (bool, string) {
		if answer, err := http.Get("http://" + addresses["provisioner"] + "/readyz"); err != nil {
			return false, err.Error()
		} else if err := answer.Body.Close(); err != nil {
			return false, err.Error()
		}
		metrics := w.scrape(addresses["provisioner"])
		return len(metrics["leader_election_master_status"].GetMetric()) == 1, metrics["leader_election_master_status"].String()
	})
	return w.newFilm(dir, "standby", addresses, "CSITandemDown", "CSITandemNobodyLeads")
}

// tableRow is one of the table of our own metrics.
var tableRow = regexp.MustCompile("(?m)^\\| `(csi_tandem_[a-z_]+)` \\| ([a-z_, ]*) ?\\|")

// checkTable: each of our metrics has the labels that the page about them says.
func (f *film) checkTable(others []*film) {
	f.Helper()
	page, err := os.ReadFile("../../docs/status.md")
	f.mustNot(err)
	want := map[string]string{}
	for _, row := range tableRow.FindAllStringSubmatch(string(page), -1) {
		names := strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(names)
		want[row[1]] = strings.Join(names, " ")
	}
	seen := map[string]bool{}
	for _, of := range append(others, f) {
		for _, address := range of.addresses {
			for name, family := range f.scrape(address) {
				if !strings.HasPrefix(name, "csi_tandem_") {
					continue
				}
				seen[name] = true
				for _, metric := range family.GetMetric() {
					var labels []string
					for _, label := range metric.GetLabel() {
						labels = append(labels, label.GetName())
					}
					slices.Sort(labels)
					if got := strings.Join(labels, " "); got != want[name] {
						f.Errorf("%s has labels %q, and the table says %q", name, got, want[name])
					}
				}
			}
		}
	}
	// A family without a series is not shown: nothing here is unserved.
	delete(want, "csi_tandem_snapshots_unserved")
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !seen[name] {
			f.Errorf("the table has %s, which no process shows", name)
		}
	}
}

// evaluate shows the films to the tests of test/monitoring, which are a module of their own.
func evaluate(t *testing.T, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "-C", "../monitoring", "test", "-count=1", ".")
	cmd.Env = append(os.Environ(), "CSI_TANDEM_FILMS="+dir)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("on the films in %s: %v\n%s", dir, err, said)
	}
}
