// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
)

// TestDriverThatBearsLittle (B045): 60 claims at once, at a driver that makes four volumes at a time and takes longer for
// each than a call may last, beside a class whose every call hangs, and with deletions in between. All are bound, hardly a
// call collides with one that the driver is still at work on, and the deletions do not wait for the creations. Catches 100
// calls at once, repeats that follow the deadline alone, and a common line for all classes.
func TestDriverThatBearsLittle(t *testing.T) {
	t.Parallel()
	const many, few, bad = 60, 8, 20
	address := freeAddress(t)
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true, provisioner: []string{
		"--timeout=1500ms", "--volume-name-template={name}-{uid}", "--http-endpoint=" + address,
	}})
	class, hanging := w.class("class"), w.class("hanging")
	var going []string
	for i := range few {
		name := fmt.Sprint("early-", i)
		w.claim(name, class)
		going = append(going, w.bound(name).Name)
	}
	rules := []string{
		w.rule(w.script.Hang(w.ctx, control.On("CreateVolume").About("bad-"), 0)),
		w.rule(w.script.Work(w.ctx, control.On("CreateVolume").About("many-"), 4, 2*time.Second)),
	}
	for i := range bad {
		w.claim(fmt.Sprint("bad-", i), hanging)
	}
	for i := range many {
		w.claim(fmt.Sprint("many-", i), class)
	}
	w.awaitCalls("CreateVolume", few+10)
	for i := range few {
		w.deleteClaim(fmt.Sprint("early-", i))
	}
	for _, volume := range going {
		w.volumeGone(volume)
	}
	if n := w.countBound("many-"); n == many {
		t.Error("the deletions were done when all creations were")
	}
	page := w.page(address, "/metrics")
	for _, metric := range []string{"limit", "in_flight", "waiting", "unsettled"} {
		if line := fmt.Sprintf("csi_tandem_driver_calls_%s{class=%q,operation=\"CreateVolume\"}", metric, class); !strings.Contains(page, line) {
			t.Errorf("there is no %s", line)
		}
	}
	for i := range many {
		w.bound(fmt.Sprint("many-", i))
	}
	aborted, calls := 0, 0
	for _, call := range w.calls("CreateVolume") {
		switch {
		case !strings.Contains(string(call.Request), "many-"):
		case call.Code == codes.Aborted:
			aborted++
			calls++
		default:
			calls++
		}
	}
	t.Logf("%d calls for %d volumes, %d of them answered Aborted", calls, many, aborted)
	if aborted > many/2 {
		t.Errorf("%d calls were answered Aborted for %d volumes", aborted, many)
	}
	if n := w.countBound("bad-"); n > 0 {
		t.Fatalf("%d claims are bound whose calls hang: the test is not what it says", n)
	}
	for _, rule := range rules {
		w.release(rule)
	}
	for i := range bad {
		w.bound(fmt.Sprint("bad-", i))
	}
}

// countBound counts the bound claims whose names begin so.
func (w *world) countBound(prefix string) (n int) {
	w.Helper()
	claims, err := w.kube.CoreV1().PersistentVolumeClaims(w.ns).List(w.ctx, metav1.ListOptions{})
	w.mustNot(err)
	for _, claim := range claims.Items {
		if strings.HasPrefix(claim.Name, prefix) && claim.Status.Phase == corev1.ClaimBound {
			n++
		}
	}
	return n
}
