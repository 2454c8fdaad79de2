// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"context"
	"testing"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// broken is a client in which a fault of this program shows once, before or after the write is done.
type broken struct {
	kube.Client
	armed, done *bool
}

func (b broken) Patch(ctx context.Context, r kube.Resource, key kube.Key, body kube.PatchBody, into kube.Object) error {
	if !*b.armed {
		return b.Client.Patch(ctx, r, key, body, into)
	}
	*b.armed = false
	if *b.done {
		_ = b.Client.Patch(ctx, r, key, body, into)
	}
	panic("a fault of this program")
}

// A look that breaks off while it writes for all leaves the writing to the others, who have what it took with it on record as well. Catches one
// after which no claim and no deletion ever comes to its turn, in a process that looks well.
func TestAWriteThatBreaksOff(t *testing.T) {
	for _, done := range []bool{false, true} {
		h := kit.New(t)
		armed := false
		a := begin(t, h, "a", func(o *attempt.Options) { o.Client = broken{o.Client, &armed, &done} })
		armed = true
		func() {
			defer func() {
				if recover() == nil {
					t.Error("nothing broke off")
				}
			}()
			_ = a.Put(h.Ctx, "one", text("x"))
		}()
		ctx, cancel := context.WithTimeout(h.Ctx, 10*time.Second)
		defer cancel()
		if err := a.Put(ctx, "other", text("y")); err != nil {
			t.Fatalf("done %v: the next who writes: %v", done, err)
		}
		if err := a.Put(ctx, "one", text("x")); err != nil {
			t.Errorf("done %v: the same once more: %v", done, err)
		}
		b := begin(t, h, "b")
		if found := b.found; len(found) != 2 {
			t.Errorf("done %v: on record are %v", done, found)
		}
	}
}
