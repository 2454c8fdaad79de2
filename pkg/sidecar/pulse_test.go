// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestPulse: an API server that hangs is told of, and one that answers is not, also with an error, beside a request that takes long, and while
// nothing is asked. Catches a process that says that all is well because no request has failed yet.
func TestPulse(t *testing.T) {
	refused := apierrors.NewTooManyRequests("later", 1)
	for name, row := range map[string]struct {
		do   func(p *pulse, wait func(time.Duration))
		want string
	}{
		"asked anew after a long pause": {func(p *pulse, wait func(time.Duration)) {
			p.ask()
			p.hear(errors.New("connection refused"))
			wait(time.Hour)
			p.ask()
			wait(time.Second)
		}, ""},
		"nothing is asked": {func(p *pulse, wait func(time.Duration)) { p.ask(); p.hear(nil); wait(time.Hour) }, ""},
		"hangs":            {func(p *pulse, wait func(time.Duration)) { p.ask(); wait(12 * time.Second) }, "it has not answered for 12s"},
		"not for long yet": {func(p *pulse, wait func(time.Duration)) { p.ask(); wait(9 * time.Second) }, ""},
		"hangs through tries": {func(p *pulse, wait func(time.Duration)) {
			for range 5 {
				p.ask()
				wait(5 * time.Second)
				p.hear(context.DeadlineExceeded)
			}
		}, "it has not answered for 25s"},
		"cannot be reached": {func(p *pulse, wait func(time.Duration)) {
			p.ask()
			p.hear(errors.New("connection refused"))
			wait(20 * time.Second)
		}, "it has not answered for 20s"},
		"could not be reached, and nobody has asked since": {func(p *pulse, wait func(time.Duration)) {
			p.ask()
			p.hear(errors.New("connection refused"))
			wait(time.Hour)
		}, ""},
		"refuses": {func(p *pulse, wait func(time.Duration)) {
			p.ask()
			wait(20 * time.Second)
			p.hear(refused)
			wait(time.Minute)
		}, ""},
		"answers others beside one that takes long": {func(p *pulse, wait func(time.Duration)) {
			p.ask()
			for range 5 {
				p.ask()
				wait(5 * time.Second)
				p.hear(nil)
			}
		}, ""},
		"answers again": {func(p *pulse, wait func(time.Duration)) {
			p.ask()
			wait(time.Minute)
			p.hear(context.DeadlineExceeded)
			p.ask()
			p.hear(nil)
			wait(time.Minute)
		}, ""},
		"given up by the end of work": {func(p *pulse, wait func(time.Duration)) {
			p.ask()
			wait(time.Second)
			p.hear(context.Canceled)
			wait(time.Minute)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			clk := clocktesting.NewFakeClock(time.Now())
			h := newHealth()
			h.pulse.clock = clk
			h.set(checkDriver, "")
			row.do(h.pulse, clk.Step)
			text, ready := h.report()
			if got := h.pulse.problem(); got != row.want || ready != (row.want == "") || strings.Contains(text, "not ok: API server: it has not answered") == ready {
				t.Errorf("%q, ready %v: %s", got, ready, text)
			}
		})
	}
}

// TestEveryRequestIsFelt: no request but a watch goes by the pulse. Catches one kind of request whose silence nobody hears.
func TestEveryRequestIsFelt(t *testing.T) {
	b := conceive(t, nil)
	for name, client := range map[string]kube.Client{"of the work": b.life.client, "of leases": b.leaseClient} {
		claim := kit.Claim("c")
		for what, do := range map[string]func() error{
			"create": func() error { _, err := kube.Create(t.Context(), client, claim); return err },
			"fetch": func() error {
				_, err := kube.Fetch[*corev1.PersistentVolumeClaim](t.Context(), client, kube.KeyOf(claim))
				return err
			},
			"patch": func() error {
				_, err := kube.Patch(t.Context(), client, claim, func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} })
				return err
			},
			"delete": func() error { return kube.Delete(t.Context(), client, claim) },
			"list": func() error {
				_, err := client.List(t.Context(), kube.ResourceOf[*corev1.PersistentVolumeClaim](), "", metav1.ListOptions{})
				return err
			},
		} {
			b.health.pulse.asked, b.health.pulse.since = 0, time.Now().Add(-time.Hour)
			_ = do()
			if b.health.pulse.silence() != 0 {
				t.Errorf("%s: %s is not felt", name, what)
			}
		}
	}
}
