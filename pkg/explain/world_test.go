// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/controller/content"
	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volumesnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// canary is in every secret of these tests, and must be in no explanation.
const canary = "s3cr3t-c4n4ry"

func askedDriver(can capability.Set) Driver {
	return Driver{Name: kit.DriverName, Version: "1.0", Capabilities: can, Asked: true}
}

func setting(h *kit.Harness, d Driver) Setting {
	return Setting{Client: h.API, Clock: h.Clock, Driver: d, RetryStart: time.Second, RetryMax: 5 * time.Minute}
}

// explainClaim explains the claim "data", and makes sure that this only read.
func explainClaim(t *testing.T, h *kit.Harness, d Driver) *Report {
	t.Helper()
	rooms := Provisioner{Claim: *claim.NewOptions(), Source: *source.NewOptions()}
	return readOnly(t, h, func() (*Report, error) { return Claim(h.Ctx, setting(h, d), rooms, kit.Namespace, "data") })
}

// explainSnapshot explains the snapshot "monday".
func explainSnapshot(t *testing.T, h *kit.Harness, d Driver, bind volumesnapshot.Bind) *Report {
	t.Helper()
	rooms := Snapshotter{Content: *content.NewOptions(), Binding: *volumesnapshot.NewOptions(), LeaseNamespaces: []string{"kube-system"}}
	rooms.Binding.Bind = bind
	return readOnly(t, h, func() (*Report, error) { return Snapshot(h.Ctx, setting(h, d), rooms, kit.Namespace, "monday") })
}

func readOnly(t *testing.T, h *kit.Harness, explain func() (*Report, error)) *Report {
	t.Helper()
	h.Put(kit.Secret("creds", map[string]string{"password": canary}))
	asked := len(h.API.Requests())
	report, err := explain()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range h.API.Requests()[asked:] {
		if r.Verb != "get" && r.Verb != "list" || r.Resource == "secrets" && !r.Bare {
			t.Errorf("an explanation sent %s %s %v", r.Verb, r.Resource, r.Key)
		}
		if inPod := report.Driver.Source == "the driver said so itself"; inPod && !mayInPod(t, r.Verb, r.Resource) {
			t.Errorf("the component explain lacks %s %s", r.Verb, r.Resource)
		}
	}
	if lines := h.Log.Lines(); len(lines) > 0 {
		t.Errorf("an explanation had effects: %q", lines)
	}
	if whole := written(t, report, "text") + written(t, report, "json"); strings.Contains(whole, canary) {
		t.Error("an explanation tells a secret")
	}
	return report
}

func written(t *testing.T, r *Report, format string) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, format); err != nil {
		t.Fatal(err)
	}
	if format == "json" && !json.Valid(b.Bytes()) {
		t.Error("no JSON:", b.String())
	}
	return b.String()
}

// about finds what was said by a machine about a kind of object.
func aboutKind(t *testing.T, r *Report, program, kind string) Machine {
	t.Helper()
	i := slices.IndexFunc(r.Machines, func(m Machine) bool { return m.Program == program && m.Object.Kind == kind })
	if i < 0 {
		t.Fatalf("%s says nothing about a %s", program, kind)
	}
	return r.Machines[i]
}

// expectation is what a test wants to read about one object.
type expectation struct {
	program, kind string
	step          string
	// says and advises are parts of the sentence, with what is in the way, and of the advice.
	says, advises string
}

func (e expectation) check(t *testing.T, r *Report) Machine {
	t.Helper()
	m := aboutKind(t, r, e.program, e.kind)
	if m.Step != e.step {
		t.Errorf("step %q, want %q: %s", m.Step, e.step, m.Sentence)
	}
	says := strings.Join(append([]string{m.Sentence}, m.Hindrances...), " in the way: ")
	if !strings.Contains(says, e.says) {
		t.Errorf("says\n%s, want\n%s", says, e.says)
	}
	if advice := strings.Join(m.Advice, "; "); !strings.Contains(advice, e.advises) || e.advises == "" && advice != "" {
		t.Errorf("advises %q, want %q", advice, e.advises)
	}
	if t.Failed() {
		t.Log("\n" + written(t, r, "text"))
	}
	return m
}

// runClaims lets the room of claims take the claim "data" one step.
func runClaims(h *kit.Harness, can capability.Set) {
	room := claim.New(*claim.NewOptions(), claim.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: can, Recorder: h.Recorder, Clock: h.Clock, Topology: h.Topology,
		Claims: h.Stores.Claims, Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, RetryStart: time.Second, RetryMax: 5 * time.Minute,
	})
	key := reconcile.Key{Namespace: kit.Namespace, Name: "data", UID: kit.UIDOf("persistentvolumeclaims", kit.Namespace, "data", 0)}
	_, _ = room.Reconcile(h.Ctx, key) // what it tells is of interest, not how it ends
}

// runVolumes does the same for the volume "pv".
func runVolumes(h *kit.Harness, can capability.Set) {
	room := volume.New(volume.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: can, Recorder: h.Recorder, Clock: h.Clock,
		Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Attachments: h.Stores.Attachments, Claims: h.Stores.Claims,
	})
	_, _ = room.Reconcile(h.Ctx, reconcile.Key{Name: "pv"})
}

// runBinding does the same for the snapshot "monday".
func runBinding(h *kit.Harness) {
	stance := volumesnapshot.NewStance(volumesnapshot.Own, volumesnapshot.StanceDeps{Client: h.API, Clock: h.Clock, Recorder: h.Recorder})
	room := volumesnapshot.New(*volumesnapshot.NewOptions(), volumesnapshot.Deps{
		Client: h.API, Recorder: h.Recorder, Clock: h.Clock, DriverName: kit.DriverName, Stance: stance,
		Snapshots: h.Stores.Snapshots, Contents: h.Stores.Contents, Classes: h.Stores.SnapshotClasses, Claims: h.Stores.Claims,
	})
	_, _ = room.Reconcile(h.Ctx, reconcile.Key{Namespace: kit.Namespace, Name: "monday"})
}

// sameWords makes sure that the event which the room writes says what the explanation says.
func sameWords(t *testing.T, h *kit.Harness, event string) {
	t.Helper()
	events := h.Recorder.Events()
	if event == "" {
		if len(events) > 0 {
			t.Errorf("the room tells %q, and the explanation knows of no event", events)
		}
		return
	}
	if !slices.ContainsFunc(events, func(e string) bool { return strings.HasSuffix(e, " "+event) }) {
		t.Errorf("the room tells %q, and the explanation %q", events, event)
	}
}

// eventOf is an event about an object, as the API server has it.
func eventOf(h *kit.Harness, name string, obj kube.Object, age time.Duration, reason, message string) *corev1.Event {
	e := &corev1.Event{Type: "Warning", Reason: reason, Message: message}
	e.Namespace, e.Name = kit.Namespace, name
	e.InvolvedObject.UID = obj.GetUID()
	e.LastTimestamp.Time = h.Clock.Now().Add(-age)
	return e
}
