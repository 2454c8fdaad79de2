// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

var recordKey = kube.Key{Namespace: "home", Name: "driver-attempts-0"}

func keepsRecord(_ *claim.Options, d *claim.Deps) {
	if d.Record == nil {
		d.Record = &claim.Recording{}
	}
	d.Record.Namespace, d.Record.Name, d.Record.Holder = recordKey.Namespace, "driver-attempts", "me"
}

// startRecorded adds the rooms of claims and of volumes, with a record, as a process that has just got the lead.
func startRecorded(h *kit.Harness, edits ...func(*claim.Options, *claim.Deps)) *claim.Controller {
	c := start(h, append(edits, keepsRecord)...)
	keys, err := c.Begin(h.Ctx)
	for err != nil && !h.HasEnded() {
		keys, err = c.Begin(h.Ctx)
	}
	for _, key := range keys {
		h.Enqueue("claim", key)
	}
	deleter := volume.New(volume.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
		Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Claims: h.Stores.Claims, RetryStart: h.RetryStart, RetryMax: h.RetryMax,
		Settle: c.Settle,
	})
	h.Add(kit.Room{Name: "volume", Reconcile: deleter.Reconcile, Keys: kit.On(deleter.KeysOfVolume)})
	return c
}

// onRecord are the claims with an entry.
func onRecord(h *kit.Harness) (uids []string) {
	object, _ := kit.Read[*corev1.ConfigMap](h.API, recordKey)
	if object == nil {
		return nil
	}
	for key := range object.Data {
		if key != "epoch" && !strings.HasPrefix(key, "part.") {
			uids = append(uids, key)
		}
	}
	slices.Sort(uids)
	return uids
}

// effects are what was done, without what was said.
func effects(h *kit.Harness) (lines []string) {
	for _, line := range h.Log.Lines() {
		if !strings.HasPrefix(line, "event") {
			lines = append(lines, strings.Join(strings.Fields(line)[:2], " "))
		}
	}
	return lines
}

// TestRecordOrder (PW-14): the request is on record before it is sent, and off before anything that only it protects can go. Catches
// a record that is written with the call or after it, and a finalizer that goes first.
func TestRecordOrder(t *testing.T) {
	for title, policy := range map[string]corev1.PersistentVolumeReclaimPolicy{"deleted": corev1.PersistentVolumeReclaimDelete, "kept": corev1.PersistentVolumeReclaimRetain} {
		t.Run(title, func(t *testing.T) {
			h := world(t, kit.Claim("data"), kit.Class(kit.ClassName, func(c *storagev1.StorageClass) { c.ReclaimPolicy = &policy }))
			h.Play(kit.Binder(h.API))
			h.Horizon = time.Minute
			var atCall []string
			var mend func()
			h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: func() {
				atCall = onRecord(h)
				mend = h.API.Script(kit.Rule{Verb: "patch", Resource: "configmaps", Err: apierrors.NewInternalError(fmt.Errorf("etcd"))})
			}})
			startRecorded(h)
			h.API.Script(kit.Rule{Verb: "patch", Resource: "persistentvolumes", Meanwhile: func() {
				if on := onRecord(h); len(on) != 0 {
					t.Error("the finalizer goes while there is an entry", on)
				}
			}})
			h.Driver.Next("DeleteVolume", kit.Reply{Meanwhile: func() {
				if on := onRecord(h); len(on) != 0 {
					t.Error("the volume goes while there is an entry", on)
				}
			}})
			h.Settle()
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
			h.Settle()
			if v, _ := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); v == nil || !kube.HasFinalizer(v, wellknown.FinalizerVolume) || len(h.Driver.Calls("DeleteVolume")) != 0 {
				t.Error("it goes before the entry does", h.Trace())
			}
			mend()
			h.Horizon = time.Hour
			h.Settle()
			if d := cmp.Diff([]string{string(dataUID.UID)}, atCall); d != "" {
				t.Error("at the call", d)
			}
			want := []string{"create configmaps", "patch configmaps", "CreateVolume " + name, "create persistentvolumes", "patch configmaps"}
			if got := effects(h); len(got) < len(want) || cmp.Diff(want[:2], got[:2]) != "" || got[3] != want[3] || got[4] != want[4] {
				t.Errorf("got %q", got)
			}
			if kept := policy == corev1.PersistentVolumeReclaimRetain; len(h.Driver.Inventory()) == 1 != kept || len(onRecord(h)) != 0 {
				t.Error(h.Driver.Inventory(), onRecord(h), h.Trace())
			}
		})
	}
}

// TestRecordSurvivesTheClaim (B003, PW-14): wherever the program dies, and even twice, a claim that is deleted while nobody runs leaves
// nothing at the driver. Catches a provisioner that remembers in memory only.
func TestRecordSurvivesTheClaim(t *testing.T) {
	for title, replies := range map[string][]kit.Reply{
		"B003 the driver answers":               nil,
		"B003 its first answer is lost":         {{Code: codes.DeadlineExceeded, Text: "late", Done: true}},
		"B003 it says nothing of use":           {{Code: codes.Internal, Text: "x", Done: true, Times: 2}},
		"B003 it makes nothing and says so":     {{Code: codes.InvalidArgument, Text: "no", Times: 1}, {Code: codes.FailedPrecondition, Text: "no", Times: 1}},
		"B003 it has no certain outcome at all": {{Code: codes.Unavailable, Text: "down", Times: 3}},
	} {
		scenario := kit.Scenario{
			World: func(h *kit.Harness) {
				h.Driver.Capabilities = can()
				h.Put(kit.Class(kit.ClassName), kit.Claim("data"))
				h.Play(kit.Binder(h.API))
				h.Driver.Next("CreateVolume", replies...)
			},
			Program:   func(h *kit.Harness) { startRecorded(h) },
			Meanwhile: func(h *kit.Harness) { kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey) },
			Check: func(t testing.TB, h *kit.Harness) {
				if left := h.Driver.Inventory(); len(left) != 0 {
					t.Errorf("left at the driver: %q\n%s", left, h.Trace())
				}
				if left := kit.All[*corev1.PersistentVolume](h.API); len(left) != 0 {
					t.Errorf("left in the cluster: %v\n%s", left[0].Name, h.Trace())
				}
			},
		}
		t.Run(title, func(t *testing.T) {
			kit.Crash(t, scenario)
			if replies == nil {
				kit.CrashTwice(t, scenario)
			}
		})
	}
}

// TestRecordIsExact (PW-14): what is resumed is the very same request, whatever class, node and claim have become. Catches one that
// builds the request anew, or gives the claim back to the scheduler because of a node that is gone.
func TestRecordIsExact(t *testing.T) {
	fill := func(t *testing.T) *kit.Harness {
		h := scheduled(t)
		h.Put(kit.Class(kit.ClassName, kit.WaitForConsumer, tier("gold")))
		h.Play(kit.Binder(h.API))
		h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Times: 1})
		h.Horizon = 100 * time.Millisecond
		startRecorded(h)
		h.Settle()
		h.Restart()
		h.Horizon = 30 * time.Minute
		kit.Remove[*corev1.Node](h.API, kube.Key{Name: "n1"})
		kit.Remove[*storagev1.CSINode](h.API, kube.Key{Name: "n1"})
		h.Put(kit.Class(kit.ClassName, kit.WaitForConsumer, func(c *storagev1.StorageClass) { c.Parameters = map[string]string{"tier": "lead"} }))
		return h
	}
	same := func(t *testing.T, h *kit.Harness) {
		t.Helper()
		all := requests(h)
		if len(all) < 2 || all[0].String() != all[len(all)-1].String() || all[0].Parameters["tier"] != "gold" {
			t.Errorf("%d requests: %v", len(all), all)
		}
	}
	t.Run("PW-14 the node is gone", func(t *testing.T) {
		h := fill(t)
		startRecorded(h)
		h.Settle()
		same(t, h)
		if v, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok || v.Status.Phase != corev1.VolumeBound || selected(h) != "n1" {
			t.Error("not provisioned", h.Trace())
		}
	})
	t.Run("PW-14 the claim is gone too", func(t *testing.T) {
		h := fill(t)
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
		startRecorded(h)
		h.Settle()
		same(t, h)
		if len(h.Driver.Inventory()) != 0 || len(onRecord(h)) != 0 {
			t.Error(h.Driver.Inventory(), onRecord(h), h.Trace())
		}
	})
	t.Run("the claim has moved on, and goes later", func(t *testing.T) {
		h := fill(t)
		kit.Edit(h.API, dataKey, kit.OnNode("n2"))
		startRecorded(h)
		h.Settle()
		all := requests(h)
		if zone := all[len(all)-1].GetAccessibilityRequirements().GetPreferred()[0].GetSegments()["zone"]; zone != "b" {
			t.Error("asked for zone", zone, h.Trace())
		}
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
		h.Settle()
		if len(h.Driver.Inventory()) != 0 || len(onRecord(h)) != 0 {
			t.Error(h.Driver.Inventory(), onRecord(h), h.Trace())
		}
	})
}

// TestRecordFails: without the acknowledgement of the record nothing is asked of the driver, and nobody is told of what passes by
// itself; without the right the work goes on. Catches a call that does not wait, and one that waits for a right.
func TestRecordFails(t *testing.T) {
	t.Run("the API server is in trouble", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		startRecorded(h)
		h.API.Fail("patch", "configmaps", apierrors.NewInternalError(fmt.Errorf("etcd")), 3)
		h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: func() {
			if len(onRecord(h)) != 1 {
				t.Error("called without a record")
			}
		}})
		h.Settle()
		if len(requests(h)) != 1 || slices.ContainsFunc(h.Log.Lines(), func(l string) bool { return strings.Contains(l, "Warning") }) {
			t.Error(len(requests(h)), h.Log.Lines())
		}
	})
	t.Run("no right", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		h.API.Deny("create", "configmaps")
		startRecorded(h)
		h.Settle()
		if len(requests(h)) != 1 || len(h.Driver.Inventory()) != 1 {
			t.Error("nothing was made", h.Trace())
		}
	})
	t.Run("another process has taken over", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		startRecorded(h)
		kit.Edit(h.API, recordKey, func(c *corev1.ConfigMap) { c.Data["epoch"] = "7 other" })
		h.Settle()
		if len(requests(h)) != 0 {
			t.Error("called although another one works")
		}
	})
	t.Run("full", func(t *testing.T) {
		long := strings.Repeat("x", 300<<10)
		h := world(t, kit.Claim("data"), kit.Class(kit.ClassName, func(c *storagev1.StorageClass) { c.Parameters = map[string]string{"p": long} }))
		startRecorded(h)
		h.Settle()
		if len(requests(h)) != 0 || !strings.Contains(fmt.Sprint(h.Log.Lines()), "ProvisioningFailed recording the request for volume "+name+" before it is made: the request has") {
			t.Error(h.Trace())
		}
	})
}

// TestRecordNotUnderstood: an entry that this process cannot repeat stays where it is, and is told of. Catches one that throws away
// what it does not know.
func TestRecordNotUnderstood(t *testing.T) {
	h := world(t)
	startRecorded(h)
	h.Settle()
	kit.Edit(h.API, recordKey, func(c *corev1.ConfigMap) { c.Data["u1"] = "\n{\"version\":9}" })
	h.Restart()
	registry := prometheus.NewRegistry()
	c := startRecorded(h, func(_ *claim.Options, d *claim.Deps) { d.Registry = registry })
	h.Settle()
	if err := c.Sweep(h.Ctx); err != nil || !slices.Equal(onRecord(h), []string{"u1"}) {
		t.Error(err, onRecord(h))
	}
	if said := fmt.Sprint(h.Log.Lines()); !strings.Contains(said, "event home/driver-attempts-0: Warning ProvisioningFailed the entry of claim u1 is not understood") {
		t.Error(said)
	}
	if got := gauge(t, registry, "csi_tandem_parked_attempts"); got != 1 {
		t.Error("parked:", got)
	}
}

func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Errorf("no gauge %s", name)
	return -1
}

// TestRecordKeepsWhatIsLetGo: an attempt of which nothing can be found out is told of and stays on record for the next process, and
// the values of its secret are nowhere in it.
func TestRecordKeepsWhatIsLetGo(t *testing.T) {
	class := kit.Class("secret", func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "s", "csi.storage.k8s.io/provisioner-secret-namespace": "default"}
	})
	h := world(t, class, kit.Claim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = kit.Ptr("secret") }),
		kit.Secret("s", map[string]string{"key": "canary"}))
	h.Play(kit.Binder(h.API))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Internal, Text: "x", Done: true, Times: 25, Meanwhile: leaves(h)})
	registry := prometheus.NewRegistry()
	startRecorded(h, func(_ *claim.Options, d *claim.Deps) { d.Registry = registry })
	h.Horizon = 100 * time.Millisecond
	h.Settle()
	if got := gauge(t, registry, "csi_tandem_open_attempts"); got != 1 {
		t.Error("open:", got)
	}
	h.Horizon = 3 * time.Hour
	h.Settle()
	h.Enqueue("claim", dataUID) // a look that finds nothing to do
	h.Settle()
	if got := gauge(t, registry, "csi_tandem_parked_attempts"); got != 1 || len(onRecord(h)) != 1 {
		t.Error("parked:", got, onRecord(h), h.Trace())
	}
	if raw := kit.Raw[*corev1.ConfigMap](h.API, recordKey); strings.Contains(raw, "canary") || strings.Contains(raw, "Y2FuYXJ5") || !strings.Contains(raw, name) {
		t.Error(raw)
	}
	h.Restart()
	startRecorded(h)
	h.Driver.Next("CreateVolume", kit.Reply{})
	h.Settle()
	if len(h.Driver.Inventory()) != 0 || len(onRecord(h)) != 0 {
		t.Error("the next process has not finished it", h.Driver.Inventory(), h.Trace())
	}
}
