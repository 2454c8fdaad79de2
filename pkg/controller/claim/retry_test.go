// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func selected(h *kit.Harness) string {
	claim, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, dataKey)
	return claim.Annotations[wellknown.AnnSelectedNode]
}

var (
	full     = kit.Reply{Code: codes.ResourceExhausted, Text: "full"}
	giveUp   = `patch persistentvolumeclaims default/data {"metadata":{"annotations":{"volume.kubernetes.io/selected-node":null}}}`
	conflict = "patch persistentvolumeclaims default/data → Conflict"
	noRoom   = failed + "rpc error: code = ResourceExhausted desc = full"
	anew     = []string{"driver CreateVolume " + name + created, "create persistentvolumes " + name, provisioned + name}
	refused  = "driver CreateVolume " + name + " → ResourceExhausted"
)

func TestRescheduling(t *testing.T) {
	t.Run("T60 given back, and nothing more until a node is chosen", func(t *testing.T) {
		h := scheduled(t)
		h.Driver.Next("CreateVolume", full)
		start(h)
		h.Settle()
		want(t, h, refused, noRoom, giveUp)
		if selected(h) != "" {
			t.Error("the annotation is still there")
		}
		h.Log.Clear()
		kit.Edit(h.API, dataKey, kit.OnNode("n2"))
		h.Settle()
		want(t, h, anew...)
		if got := requests(h)[1].AccessibilityRequirements.Preferred[0].Segments["zone"]; got != "b" {
			t.Errorf("preferred %s", got)
		}
	})
	t.Run("T60 W31 the old annotation in a slow cache means nothing any more", func(t *testing.T) {
		h := scheduled(t)
		h.Stores.Hold()
		h.Driver.Next("CreateVolume", full)
		start(h)
		h.Settle()
		h.Enqueue("claim", dataUID)
		h.Settle()
		want(t, h, refused, noRoom, giveUp)
	})
	t.Run("T62 a conflict: asked again, given back then", func(t *testing.T) {
		h := scheduled(t)
		h.Driver.Next("CreateVolume", full, full)
		h.API.Conflict("persistentvolumeclaims", 1)
		start(h)
		h.Settle()
		want(t, h, refused, noRoom, conflict, refused, giveUp)
	})
	t.Run("T62 a node that was chosen meanwhile is not erased", func(t *testing.T) {
		h := scheduled(t)
		h.Driver.Next("CreateVolume", full)
		h.API.Script(kit.Rule{Verb: "patch", Resource: "persistentvolumeclaims", Times: 1, Meanwhile: func() {
			kit.Edit(h.API, dataKey, kit.OnNode("n2"))
		}})
		start(h)
		h.Settle()
		want(t, h, append([]string{refused, noRoom, conflict}, anew...)...)
		if selected(h) != "n2" {
			t.Errorf("selected is %q", selected(h))
		}
	})
	t.Run("T61 no topology: the annotation stays", func(t *testing.T) {
		h := scheduled(t)
		h.Driver.Capabilities = can()
		h.Driver.Next("CreateVolume", full)
		start(h)
		h.Settle()
		want(t, h, append([]string{refused, noRoom}, anew...)...)
	})
	t.Run("T84 the node is gone", func(t *testing.T) {
		h := scheduled(t)
		kit.Remove[*storagev1.CSINode](h.API, kube.Key{Name: "n1"})
		start(h)
		h.Settle()
		want(t, h, failed+`error generating accessibility requirements: CSINode "n1" of the selected node not found; the scheduler is asked to choose another node`, giveUp)
	})
	t.Run("an open call forbids to give back", func(t *testing.T) {
		h := scheduled(t)
		h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Done: true}, full)
		start(h)
		h.Settle()
		want(t, h, append([]string{"driver CreateVolume " + name + " → DeadlineExceeded", failed + "rpc error: code = DeadlineExceeded desc = slow", refused, noRoom}, anew...)...)
		if selected(h) != "n1" {
			t.Error("the annotation is gone")
		}
	})
}

func TestLateLabels(t *testing.T) {
	h := scheduled(t)
	h.Put(kit.CSINode("n1", "type", "zone"))
	start(h)
	h.Horizon = time.Minute
	h.Settle()
	want(t, h, failed+`error generating accessibility requirements: topology labels from selected node map[zone:a] does not match topology keys from CSINode [type zone]: node "n1" lacks the labels [type]; look whether the driver on that node is up to date, or set the labels on the node; the claim goes on by itself then`)
	h.Log.Clear()
	h.Put(kit.Node("n1", map[string]string{"zone": "a", "type": "ssd"}))
	came := h.Clock.Now()
	h.Settle()
	want(t, h, anew...)
	if took := h.Clock.Since(came); took > 5*time.Second {
		t.Errorf("B019 B039: took %v", took)
	}
}

func TestInfeasible(t *testing.T) {
	bad := kit.Reply{Code: codes.InvalidArgument, Text: "odd"}
	line := "driver CreateVolume " + name + " → InvalidArgument"
	text := failed + "Volume provisioning failed with infeasible error. Retries will be delayed. rpc error: code = InvalidArgument desc = odd; compare the words of the driver with the parameters of StorageClass " + kit.ClassName +
		", and with what is asked for; it is asked again within --retry-interval-max (5m if not set), or at once with kubectl annotate pvc -n default data --overwrite csi-tandem.io/retry=$(date +%s)"
	for _, c := range []struct {
		name string
		do   func(*kit.Harness)
		wait time.Duration
	}{
		{"T63 five minutes", func(*kit.Harness) {}, 5 * time.Minute},
		{"T63 the class was replaced", func(h *kit.Harness) {
			kit.Remove[*storagev1.StorageClass](h.API, kube.Key{Name: kit.ClassName})
			successor := kit.Class(kit.ClassName)
			successor.UID = "second"
			h.Put(successor)
		}, 0},
		{"W9 the claim was changed", func(h *kit.Harness) { kit.Edit(h.API, dataKey, kit.Size("2Gi")) }, 0},
		{"annotated as the event says", func(h *kit.Harness) {
			kit.Edit(h.API, dataKey, func(c *corev1.PersistentVolumeClaim) { c.Annotations[wellknown.AnnRetry] = "1" })
		}, 0},
		{"a touch that changes nothing", func(h *kit.Harness) {
			kit.Edit(h.API, dataKey, func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} })
		}, 5 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			var again time.Duration
			h.Driver.Next("CreateVolume", bad, kit.Reply{Meanwhile: func() { again = h.Clock.Since(kit.Start) }})
			start(h)
			h.Horizon = 0
			h.Settle()
			want(t, h, line, text)
			c.do(h)
			h.Horizon = 10 * time.Minute
			h.Settle()
			want(t, h, append([]string{line, text}, anew...)...)
			if again != c.wait {
				t.Errorf("asked again after %v, want %v", again, c.wait)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	h := world(t, kit.Claim("data"))
	var at []time.Duration
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Internal, Text: "x", Times: 12, Meanwhile: func() {
		at = append(at, h.Clock.Since(kit.Start))
	}})
	start(h)
	h.Settle()
	seconds := []time.Duration{0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1111}
	for i := range seconds {
		seconds[i] *= time.Second
	}
	if d := cmp.Diff(seconds, at); d != "" {
		t.Error("T64", d)
	}
	if got := h.Recorder.Count("Warning ProvisioningFailed rpc error: code = Internal desc = x"); got != 12 {
		t.Errorf("T65: told %d times", got)
	}
}
