// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// tenured is a process that leads for the nth time that a lease is held, since the first of which only such as it have led. What it is told of is
// in trusted or in between.
type tenured struct {
	*process
	trusted, between []string
}

func lead(h *kit.Harness, lease types.UID, first, now int64) *tenured {
	p := &tenured{}
	p.process = newProcess(h, "h"+string(rune('0'+now)), func(o *attempt.Options) {
		o.Tenure = func() kube.Tenure { return kube.Tenure{Lease: lease, First: first, Last: now} }
		o.Found = func(_ context.Context, entries []attempt.Entry) {
			for _, e := range entries {
				text := string(e.UID) + "=" + e.Body
				if e.Between {
					p.between = append(p.between, text)
				} else {
					p.trusted = append(p.trusted, text)
				}
			}
		}
	})
	return p
}

func (p *tenured) wants(t *testing.T, h *kit.Harness, trusted, between string) {
	t.Helper()
	if err := p.Begin(h.Ctx); err != nil {
		t.Fatal(err)
	}
	slices.Sort(p.trusted)
	slices.Sort(p.between)
	if d := cmp.Diff([]string{trusted, between}, []string{strings.Join(p.trusted, " "), strings.Join(p.between, " ")}); d != "" {
		t.Errorf("found, trusted and not (-want +got):\n%s", d)
	}
}

// TestOthersLedBetween: what is on record is trusted if only those who keep the record have led since it was written, whether they came to write or
// not. Catches a record that goes by the epoch alone, and so resumes what the incumbents have brought to its end between two of ours; and one that
// distrusts what another of ours has left that was killed before it could begin.
func TestOthersLedBetween(t *testing.T) {
	for name, c := range map[string]struct {
		lease      types.UID
		first, now int64
		isTrusted  bool
	}{
		"the next one":                    {"l", 5, 6, true},
		"one of ours did not get to it":   {"l", 4, 9, true},
		"the same one leads on":           {"l", 5, 5, true},
		"others led between":              {"l", 7, 7, false},
		"others led, and another of ours": {"l", 7, 8, false},
		"the lease was made anew":         {"m", 0, 6, false},
		"the lease counts anew":           {"l", 0, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.New(t)
			a := lead(h, "l", 5, 5)
			a.wants(t, h, "", "")
			put(t, h, a.process, "u1", text("one", "P"))
			want := [2]string{"", "u1=one"}
			if c.isTrusted {
				want = [2]string{"u1=one", ""}
			}
			lead(h, c.lease, c.first, c.now).wants(t, h, want[0], want[1])
			// Who comes then can tell from the key only.
			b := lead(h, c.lease, c.first, c.now+1)
			b.wants(t, h, want[0], want[1])
			if err := b.Settle(h.Ctx, "u1"); err != nil {
				t.Error(err)
			}
			if d := data(h, first); len(d) != 1 {
				t.Error("left on record:", d)
			}
		})
	}
}

// TestBetweenIsMarkedWithTheEpoch: the answer to the write that takes the record over is lost, the process dies or tries again, and all objects are
// as they were written by then. Catches marks that come after the epoch: with it the record looks like one that was always ours.
func TestBetweenIsMarkedWithTheEpoch(t *testing.T) {
	for n := range 3 {
		h := kit.New(t)
		a := lead(h, "l", 1, 1)
		a.wants(t, h, "", "")
		long := strings.Repeat("x", 240)
		for _, uid := range []types.UID{"u1", "u2", types.UID(long + "1"), types.UID(long + "2")} {
			put(t, h, a.process, uid, text("one"))
		}
		h.API.Lose("patch", configMaps, late, 1)
		b := lead(h, "l", 3, 3)
		if err := b.Begin(h.Ctx); err == nil {
			t.Fatal("the answer is not lost")
		}
		if n > 0 {
			b = lead(h, "l", 3, 3+int64(n))
		}
		key := strings.Repeat("x", 200)
		b.wants(t, h, "", "u1=one u2=one "+key+"=one "+key+"=one")
	}
}

// TestBetweenBesideOwn: an entry from before is gone on with, and what is written for its claim then is trusted; both go together, and each stays
// what it is when something else is in the way.
func TestBetweenBesideOwn(t *testing.T) {
	h := kit.New(t)
	a := lead(h, "l", 1, 1)
	a.wants(t, h, "", "")
	put(t, h, a.process, "u1", text("old"))
	b := lead(h, "l", 3, 3)
	b.wants(t, h, "", "u1=old")
	put(t, h, b.process, "u1", text("new"))
	lead(h, "l", 5, 5).wants(t, h, "", "u1=new u1=old")
	kit.Edit(h.API, first, func(c *corev1.ConfigMap) { c.Data["u1"] = "\nlatest" })
	c := lead(h, "l", 5, 6)
	c.wants(t, h, "u1=latest", "u1=new u1=old")
	c.Remove("u1")
	if err := c.Sweep(h.Ctx); err != nil {
		t.Error(err)
	}
	if d := data(h, first); len(d) != 1 {
		t.Error("left on record:", d)
	}
}

// TestTenureNotKnown: without an election nobody can tell, and what is on record is gone on with.
func TestTenureNotKnown(t *testing.T) {
	h := kit.New(t)
	a := lead(h, "l", 1, 1)
	a.wants(t, h, "", "")
	put(t, h, a.process, "u1", text("one"))
	b := lead(h, "", 0, 0)
	b.wants(t, h, "u1=one", "")
	// After it, nobody knows who else worked without one.
	lead(h, "l", 1, 2).wants(t, h, "", "u1=one")
}
