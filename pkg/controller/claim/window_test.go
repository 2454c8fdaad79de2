// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestSettleBetweenWriteAndCall: a PersistentVolume that the claim had before comes to its end while a new request for it is being recorded.
// Catches a room that takes the fresh entry off, so that the call is made without one.
func TestSettleBetweenWriteAndCall(t *testing.T) {
	h := world(t, kit.Claim("data"))
	c := startRecorded(h)
	settled := make(chan bool, 1)
	h.API.Script(kit.Rule{Verb: "patch", Resource: "configmaps", Times: 1, Meanwhile: func() {
		go func() {
			ok, _ := c.Settle(h.Ctx, ofClaim(&corev1.ObjectReference{Namespace: dataKey.Namespace, Name: dataKey.Name, UID: dataUID.UID}))
			settled <- ok
		}()
		runtime.Gosched() // it may go first, and must not
	}})
	h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: func() {
		if <-settled || len(onRecord(h)) != 1 {
			t.Error("called without an entry", onRecord(h))
		}
	}})
	h.Settle()
	if len(requests(h)) != 1 || len(onRecord(h)) != 0 {
		t.Error(onRecord(h), h.Trace())
	}
}

// TestUnreadEntryOfALivingClaim: the claim of an entry that is not understood gets its volume, and the entry stays until that volume
// is at its end. Catches a request that is written over it.
func TestUnreadEntryOfALivingClaim(t *testing.T) {
	h := world(t)
	h.Play(kit.Binder(h.API))
	startRecorded(h)
	h.Settle()
	uid := string(dataUID.UID)
	kit.Edit(h.API, recordKey, func(c *corev1.ConfigMap) { c.Data[uid] = "\n{\"version\":9}" })
	h.Put(kit.Claim("data"))
	h.Restart()
	var atCall []string
	h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: func() { atCall = onRecord(h) }})
	startRecorded(h)
	h.Settle()
	if want := []string{uid, uid + ".unread-1"}; !slices.Equal(atCall, want) || !slices.Equal(onRecord(h), want[1:]) {
		t.Errorf("at the call %v, then %v\n%s", atCall, onRecord(h), h.Trace())
	}
	h.Restart()
	startRecorded(h)
	h.Settle()
	if said := fmt.Sprint(h.Log.Lines()); !strings.Contains(said, "the entry of claim "+uid+".unread-1 is not understood") {
		t.Error(said)
	}
	leaves(h)()
	h.Settle()
	if len(onRecord(h)) != 0 || len(h.Driver.Inventory()) != 0 {
		t.Error(onRecord(h), h.Driver.Inventory(), h.Trace())
	}
}

// TestEntryBesideAnother: a process that understands both entries of a claim repeats both requests until an answer is certain. Catches one
// that goes on with one of them only.
func TestEntryBesideAnother(t *testing.T) {
	h := world(t, kit.Claim("data", kit.OnNode("n1")))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "x"})
	h.Horizon = 100 * time.Millisecond
	startRecorded(h)
	h.Settle()
	uid := string(dataUID.UID)
	kit.Edit(h.API, recordKey, func(c *corev1.ConfigMap) {
		c.Data[uid+".unread-1"] = c.Data[uid]
		c.Data[uid] = strings.ReplaceAll(c.Data[uid], `"requiredBytes":"`, `"limitBytes":"9`)
	})
	h.Restart()
	leaves(h)()
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.InvalidArgument, Text: "no", Times: 2})
	startRecorded(h)
	h.Horizon = 30 * time.Minute
	h.Settle()
	if len(requests(h)) != 3 || len(onRecord(h)) != 0 {
		t.Error(len(requests(h)), onRecord(h), h.Trace())
	}
}

// throttled puts the gates before the driver.
func throttled(h *kit.Harness) func(*claim.Options, *claim.Deps) {
	return func(_ *claim.Options, d *claim.Deps) {
		d.Driver = throttle.New(h.Driver, throttle.Options{Most: 4, Deadline: 10 * time.Second, Clock: h.Clock})
	}
}

// TestClaimGoesBeforeItsTurn: a claim that goes while its first call waits for its turn costs no call. A repeat is made all the same,
// since only it can tell what became of the first. Catches a volume that is made to be removed again, and one that is left.
func TestClaimGoesBeforeItsTurn(t *testing.T) {
	t.Run("the first call", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		startRecorded(h, throttled(h))
		h.API.Script(kit.Rule{Verb: "patch", Resource: "configmaps", Times: 1, Meanwhile: leaves(h)})
		h.Settle()
		said := strings.Join(h.Log.Lines(), "\n")
		if len(requests(h)) != 0 || len(onRecord(h)) != 0 || strings.Contains(said, "event") {
			t.Error(len(requests(h)), onRecord(h), said)
		}
	})
	t.Run("the first call for another node", func(t *testing.T) {
		h := scheduled(t)
		h.Play(kit.Binder(h.API))
		h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true})
		h.Horizon = 100 * time.Millisecond
		startRecorded(h)
		h.Settle()
		h.Restart()
		kit.Edit(h.API, dataKey, kit.OnNode("n2"))
		startRecorded(h, throttled(h))
		h.API.Script(kit.Rule{Verb: "patch", Resource: "configmaps", Times: 1, Meanwhile: leaves(h)})
		h.Horizon = 30 * time.Minute
		h.Settle()
		if len(h.Driver.Inventory()) != 0 || len(onRecord(h)) != 0 || len(requests(h)) != 2 {
			t.Error("what was made for the first node is forgotten: ", len(requests(h)), h.Driver.Inventory(), onRecord(h), h.Trace())
		}
	})
	t.Run("a repeat", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		h.Play(kit.Binder(h.API))
		h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Done: true, Meanwhile: leaves(h)})
		startRecorded(h, throttled(h))
		h.Settle()
		if len(requests(h)) != 2 || len(h.Driver.Inventory()) != 0 || len(onRecord(h)) != 0 {
			t.Error(len(requests(h)), h.Driver.Inventory(), onRecord(h), h.Trace())
		}
	})
}
