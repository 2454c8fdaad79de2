// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// pausing is a recorder that lets somebody be faster while it is told of something.
type pausing struct {
	kube.Recorder
	// meanwhile runs once while an entry is told of, and told once while a failure is.
	meanwhile, told func()
}

func (p *pausing) Warning(obj kube.Object, reason, message string) {
	p.Recorder.Warning(obj, reason, message)
	if strings.Contains(message, "is not understood") {
		once(&p.meanwhile)
	} else {
		once(&p.told)
	}
}

func once(f *func()) {
	if do := *f; do != nil {
		*f = nil
		do()
	}
}

// lateRight is a process that gets the right to the record late. On it are the attempt of an earlier process for the claim "data", and before
// that an entry that is not understood, at which it pauses.
type lateRight struct {
	*kit.Harness
	*pausing
	c     *claim.Controller
	begin func()
	// keys are what the record told to look at, and failed runs once when a call has failed.
	keys   []reconcile.Key
	failed func()
}

func newLateRight(t *testing.T, edits ...func(*storagev1.StorageClass)) *lateRight {
	h := world(t, kit.Claim("data"))
	h.Play(kit.Binder(h.API))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true})
	h.Horizon = 100 * time.Millisecond
	startRecorded(h)
	h.Settle()
	h.Restart()
	kit.Edit(h.API, recordKey, func(c *corev1.ConfigMap) { c.Data["0"] = "\n{\"version\":9}" })
	h.Put(kit.Class(kit.ClassName, edits...))
	grant := h.API.Deny("", "configmaps")
	r := &lateRight{Harness: h, pausing: &pausing{Recorder: h.Recorder}}
	r.c = startRecorded(h, func(_ *claim.Options, d *claim.Deps) {
		d.Recorder, d.Failed = r.pausing, func(string, string) { once(&r.failed) }
	})
	r.begin = func() {
		t.Helper()
		grant()
		keys, err := r.c.Begin(h.Ctx)
		if err != nil {
			t.Error(err)
		}
		r.keys = keys
	}
	return r
}

// TestSettledBetweenReadingAndAdopting: the record can be read late, and between the reading and the taking up of what was read the
// PersistentVolume of the claim is at its end: the entry is taken off, and the volume is kept. Catches a room that takes up what it has read
// although it is off by then, and so makes, or deletes, what somebody has kept.
func TestSettledBetweenReadingAndAdopting(t *testing.T) {
	h := newLateRight(t)
	h.Settle()
	before := len(requests(h.Harness))
	h.meanwhile = func() {
		leaves(h.Harness)()
		ok, err := h.c.Settle(h.Ctx, ofClaim(&corev1.ObjectReference{Namespace: dataKey.Namespace, Name: dataKey.Name, UID: dataUID.UID}))
		if err != nil || !ok {
			t.Error("not settled", err)
		}
		kit.Edit(h.API, kube.Key{Name: name}, func(v *corev1.PersistentVolume) { v.Finalizers = nil })
		kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
	}
	h.begin()
	for _, key := range h.keys {
		h.Enqueue("claim", key)
	}
	h.Horizon = 30 * time.Minute
	h.Settle()
	if n := len(requests(h.Harness)); n != before || len(h.Driver.Inventory()) != 1 {
		t.Errorf("%d requests for a claim that was settled, at the driver %v\n%s", n-before, h.Driver.Inventory(), h.Trace())
	}
}

// TestEndsWhileAnotherIsFound: an attempt of this process ends by an answer that is certain, and at that very moment the record is read, with
// the one of an earlier process on it, whose volume is at the driver. Catches a room whose own end throws away what it has just found.
func TestEndsWhileAnotherIsFound(t *testing.T) {
	t.Run("between the answer and the end", func(t *testing.T) {
		h := newLateRight(t, tier("lead"))
		h.failed = h.begin
		h.told = func() { wantOnRecord(t, h) }
		h.Settle()
		wantNothingLeft(t, h)
	})
	t.Run("between the reading and the adopting", func(t *testing.T) {
		h := newLateRight(t, tier("lead"))
		read, ended, adopted := make(chan struct{}), make(chan struct{}), make(chan struct{})
		h.meanwhile = func() { close(read); <-ended }
		h.failed = func() {
			go func() { defer close(adopted); h.begin() }()
			<-read
		}
		h.told = func() {
			close(ended)
			<-adopted
			wantOnRecord(t, h)
		}
		h.Settle()
		wantNothingLeft(t, h)
	})
}

// wantOnRecord: should the process end now, the next one finds it.
func wantOnRecord(t *testing.T, h *lateRight) {
	t.Helper()
	if err := h.c.Sweep(h.Ctx); err != nil {
		t.Error(err)
	}
	if on := onRecord(h.Harness); len(on) < 2 {
		t.Error("taken off before it has an end:", on)
	}
}

func wantNothingLeft(t *testing.T, h *lateRight) {
	t.Helper()
	if len(h.keys) == 0 {
		t.Fatal("nothing was found")
	}
	for _, key := range h.keys {
		h.Enqueue("claim", key)
	}
	h.Horizon = time.Minute
	h.Settle()
	leaves(h.Harness)()
	h.Horizon = 30 * time.Minute
	h.Settle()
	if left := h.Driver.Inventory(); len(left) != 0 || len(onRecord(h.Harness)) != 1 {
		t.Errorf("left at the driver: %v, on record: %v\n%s", left, onRecord(h.Harness), h.Trace())
	}
}

// TestDoubtfulEntries: so many volumes came to their end without the right to the record that not all are remembered. An entry of a claim that
// waits is gone on with; one of a claim that is gone is told of and left to a person. Catches a room that makes a volume anew, and deletes it,
// which somebody has kept since.
func TestDoubtfulEntries(t *testing.T) {
	other, same := tier("lead"), func(*storagev1.StorageClass) {}
	for title, c := range map[string]struct {
		class  func(*storagev1.StorageClass)
		isGone bool
	}{"the claim waits": {other, false}, "the claim has its volume": {same, false}, "the claim is gone": {other, true}} {
		t.Run(title, func(t *testing.T) {
			h := newLateRight(t, c.class)
			h.Settle()
			if c.isGone {
				leaves(h.Harness)()
			}
			for i := range 20_000 {
				if _, err := h.c.Settle(h.Ctx, ofClaim(&corev1.ObjectReference{Namespace: "n", Name: "c", UID: types.UID(fmt.Sprint("of-none-", i))})); err != nil {
					t.Fatal(err)
				}
			}
			h.begin()
			h.Settle()
			said := strings.Contains(strings.Join(h.Log.Lines(), "\n"), "the entry of claim "+string(dataUID.UID)+" is not understood, so that a volume may be left at the driver: more volumes came to their end")
			if said != c.isGone {
				t.Errorf("told %v\n%s", said, strings.Join(h.Log.Lines(), "\n"))
			}
		})
	}
}

// TestLeadsAgainInMidCall: the lease is lost while the driver is at work, and the same process leads again before the driver has answered. Catches
// a process that takes its own entry for one that is still being worked on, and one whose first life goes on with what the second does.
func TestLeadsAgainInMidCall(t *testing.T) {
	for title, c := range map[string]struct {
		method string
		leaves bool
	}{
		"a creation":                     {"CreateVolume", false},
		"a creation, and the claim goes": {"CreateVolume", true},
		"a removal":                      {"DeleteVolume", false},
		"a removal, and the claim goes":  {"DeleteVolume", true},
	} {
		t.Run(title, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.Play(kit.Binder(h.API))
			if c.method == "DeleteVolume" {
				h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
			}
			h.Driver.Next(c.method, kit.Reply{Code: codes.Canceled, Text: "context canceled", Done: true, Meanwhile: func() {
				h.Restart()
				if c.leaves {
					leaves(h)()
				}
				startRecorded(h)
			}})
			startRecorded(h)
			h.Settle()
			want := 1
			if c.leaves {
				want = 0
			}
			if n := len(h.Driver.Inventory()); n != want || len(kit.All[*corev1.PersistentVolume](h.API)) != want || len(onRecord(h)) != 0 {
				t.Error(h.Driver.Inventory(), onRecord(h), h.Trace())
			}
		})
	}
}

// ofClaim is a PersistentVolume that leads to a claim.
func ofClaim(ref *corev1.ObjectReference) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{}
	v.Spec.ClaimRef = ref
	return v
}
