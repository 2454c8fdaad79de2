// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestSettledWithoutARightIsBounded: without the right to the record for good, each volume that comes to its end is remembered, because an entry
// of it may turn up. That has a bound; beyond it, what turns up is told apart as doubtful, and is not taken for an attempt that is open.
// Catches a memory that grows with every volume that is ever deleted, and a bound that makes it forget that something was settled.
func TestSettledWithoutARightIsBounded(t *testing.T) {
	for title, c := range map[string]struct {
		more         int
		wantDoubtful bool
	}{"few": {0, false}, "more than are remembered": {maxOver, true}} {
		t.Run(title, func(t *testing.T) {
			h := kit.New(t)
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "record-0"}, Data: map[string]string{
				"epoch": "1 old", "open": "\nopen", "settled": "\nsettled", "settled-late": "\nlate",
			}}
			h.Put(object)
			release := h.API.Deny("patch", "configmaps")
			found := map[types.UID]bool{}
			r := New(Options{Client: h.API, Clock: h.Clock, Namespace: "home", Name: "record", Holder: "me", Found: func(_ context.Context, entries []Entry) {
				for _, e := range entries {
					found[e.UID] = e.Doubtful
				}
			}})
			settle := func(uid types.UID) {
				t.Helper()
				if err := r.Settle(h.Ctx, uid); err != nil {
					t.Fatal(err)
				}
			}
			begin := func() {
				t.Helper()
				if err := r.Begin(h.Ctx); err != nil {
					t.Fatal(err)
				}
			}
			begin()
			settle("settled")
			for i := range c.more {
				settle(types.UID(fmt.Sprint("of-no-entry-", i)))
			}
			settle("settled-late")
			if n := len(r.over); n > maxOver {
				t.Errorf("%d are remembered", n)
			}
			release()
			begin()
			if doubtful, ok := found["open"]; !ok || doubtful != c.wantDoubtful {
				t.Error("what is open was found:", found)
			}
			if _, ok := found["settled"]; ok {
				t.Error("what is known to be settled turns up", found)
			}
			if doubtful, ok := found["settled-late"]; ok != c.wantDoubtful || doubtful != c.wantDoubtful {
				t.Error("what was settled turns up as open", found)
			}
			if len(r.over) != 0 || r.forgot {
				t.Error("remembered for longer than needed")
			}
		})
	}
}
