// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// turns runs a room over one claim and lists after what time each turn came.
func turns(t *testing.T, answers ...func() (reconcile.Result, error)) []time.Duration {
	t.Helper()
	h := New(t)
	h.Put(Claim("data"))
	var at []time.Duration
	h.Add(Room{Name: "room", Keys: OwnKey[*corev1.PersistentVolumeClaim](), Reconcile: func(context.Context, reconcile.Key) (reconcile.Result, error) {
		at = append(at, h.Clock.Since(Start))
		if len(at) > len(answers) {
			return reconcile.Result{}, nil
		}
		return answers[len(at)-1]()
	}})
	h.Settle()
	return at
}

func after(d time.Duration) func() (reconcile.Result, error) {
	return func() (reconcile.Result, error) { return reconcile.Result{After: d}, nil }
}

func fails(err error) func() (reconcile.Result, error) {
	return func() (reconcile.Result, error) { return reconcile.Result{}, err }
}

func TestSettleKeepsTheQueuesPromises(t *testing.T) {
	err := errors.New("no")
	const s = time.Second
	for name, row := range map[string]struct {
		answers []func() (reconcile.Result, error)
		want    []time.Duration
	}{
		"once":                          {nil, []time.Duration{0}},
		"again later":                   {[]func() (reconcile.Result, error){after(time.Minute)}, []time.Duration{0, time.Minute}},
		"growing delays":                {[]func() (reconcile.Result, error){fails(err), fails(err), fails(err)}, []time.Duration{0, s, 3 * s, 7 * s}},
		"success resets the delay":      {[]func() (reconcile.Result, error){fails(err), fails(err), after(s), fails(err)}, []time.Duration{0, s, 3 * s, 4 * s, 5 * s}},
		"terminal":                      {[]func() (reconcile.Result, error){fails(fault.Terminal(err))}, []time.Duration{0}},
		"asked for a time":              {[]func() (reconcile.Result, error){fails(fault.RetryAfter(err, 9*s))}, []time.Duration{0, 9 * s}},
		"later than anybody would wait": {[]func() (reconcile.Result, error){after(24 * time.Hour)}, []time.Duration{0}},
	} {
		if diff := cmp.Diff(row.want, turns(t, row.answers...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLaggingCachesAreSeenByRooms(t *testing.T) {
	for lag, want := range map[int][]string{0: {"", "b"}, 2: {"", "", "b"}} {
		h := New(t)
		h.Put(Claim("data"))
		h.Lag(lag)
		var seen []string
		h.Add(Room{Name: "room", Keys: OwnKey[*corev1.PersistentVolumeClaim](), Reconcile: func(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
			claim, _ := h.Stores.Claims.Lookup(dataKey)
			seen = append(seen, claim.Labels["a"])
			if claim.Labels["a"] == "b" {
				return reconcile.Result{}, nil
			}
			_, err := kube.PatchOwnFields(ctx, h.API, claim, func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} })
			if lag > 0 && len(seen) < 3 {
				h.Enqueue("room", reconcile.Key{Namespace: Namespace, Name: "data"})
			}
			return reconcile.Result{}, err
		}})
		h.Settle()
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("lag %d: %s", lag, diff)
		}
	}
}

func TestRestartForgetsTheProgramOnly(t *testing.T) {
	h := New(t)
	h.Put(Claim("data"), Class(ClassName), Node("n", map[string]string{"zone": "a"}), CSINode("n", "zone"))
	h.Play(Binder(h.API))
	runs := 0
	room := Room{Name: "room", Keys: OwnKey[*corev1.PersistentVolumeClaim](), Reconcile: func(context.Context, reconcile.Key) (reconcile.Result, error) {
		runs++
		return reconcile.Result{After: time.Minute}, nil
	}}
	h.Horizon = 0
	h.Add(room)
	h.Settle()
	old := h.Ctx
	h.Restart()
	h.Horizon = time.Hour
	h.Settle()
	if runs != 1 || old.Err() == nil || h.Ctx.Err() != nil {
		t.Errorf("a dead room ran %d times", runs)
	}
	if labels, ok := h.Topology.Labels("n"); !ok || labels["zone"] != "a" {
		t.Error("the new life does not know the nodes")
	}
	if _, ok := h.Stores.Claims.Lookup(dataKey); !ok {
		t.Error("the new life does not know the claim")
	}
	// The actors go on.
	h.Put(Volume("pv", ClaimedBy(Claim("data"))))
	h.Settle()
	if claim, _ := Read[*corev1.PersistentVolumeClaim](h.API, dataKey); claim.Spec.VolumeName != "pv" {
		t.Errorf("not bound: %v", claim.Spec)
	}
}

func TestRecorderTellsOnceAndCounts(t *testing.T) {
	r := NewRecorder(nil)
	claim := Claim("data")
	r.Warning(claim, "Failed", "no room")
	r.Warning(claim, "Failed", "no room")
	r.Normal(claim, "Done", "yes")
	if diff := cmp.Diff([]string{"Warning Failed no room", "Normal Done yes"}, r.Events()); diff != "" {
		t.Error(diff)
	}
	if got := r.Count("Warning Failed no room"); got != 2 {
		t.Errorf("counted %d", got)
	}
}

func TestStateLeavesOutWhatDiffersFromRunToRun(t *testing.T) {
	one, two := New(t), New(t)
	two.Put(Secret("other", nil))
	Remove[*corev1.Secret](two.API, kube.Key{Namespace: Namespace, Name: "other"})
	two.Clock.Step(time.Hour)
	for _, h := range []*Harness{one, two} {
		claim := With(Claim("data"), Finalizers("x"))
		claim.UID, claim.CreationTimestamp.Time = "", h.Clock.Now()
		h.Put(claim)
		Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
	}
	if diff := cmp.Diff(one.State(), two.State()); diff != "" {
		t.Error(diff)
	}
	Edit(two.API, dataKey, func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} })
	if cmp.Equal(one.State(), two.State()) {
		t.Error("a difference is not seen")
	}
}

func TestTouchedCachesAreSeen(t *testing.T) {
	h := New(t)
	h.Put(Claim("read"), Claim("written"), Claim("written-then-gone"))
	stores := NewStores(h.API)
	defer stores.stop()
	for _, name := range []string{"written", "written-then-gone"} {
		claim, _ := stores.Claims.Lookup(kube.Key{Namespace: Namespace, Name: name})
		claim.Annotations["mine"] = "yes"
	}
	Remove[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: Namespace, Name: "written-then-gone"})
	want := []string{"persistentvolumeclaims default/written", "persistentvolumeclaims default/written-then-gone"}
	if diff := cmp.Diff(want, stores.Touched()); diff != "" {
		t.Error(diff)
	}
	if now, _ := Read[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: Namespace, Name: "written"}); now.Annotations["mine"] != "" {
		t.Error("the server saw a change that nobody sent")
	}
}
