// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// A full node whose first answer was lost gives the claim back. Catches one that takes it again at once, before the others that have room.
func TestFullNodeWithOpenAttemptLetsOthersGo(t *testing.T) {
	n := onNodes(t, gibs(10), kit.Class(kit.ClassName), kit.Claim("data", kit.OnNode("n1")))
	n.drivers["n1"].Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow"},
		kit.Reply{Code: codes.ResourceExhausted, Text: "full", Times: 9999})
	n.Horizon = 30 * time.Minute
	n.Settle()
	if got := n.made(); len(got) != 1 || got["n1"] != 0 {
		t.Errorf("volumes on %v, n1 took it %d times, was asked %d times", got, owned(n.Log.Lines()), len(n.drivers["n1"].Calls("CreateVolume")))
	}
}

// The PersistentVolume of a claim is given to another claim before it was bound. Catches a claim that waits for ever without a word.
func TestOwnNameTaken(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Horizon = time.Minute
	startRecorded(h)
	h.Settle()
	kit.Edit(h.API, kube.Key{Name: name}, func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: kit.Namespace, Name: "other", UID: "other-uid"}
	})
	h.Log.Clear()
	kit.Edit(h.API, dataKey, func(c *corev1.PersistentVolumeClaim) { c.Annotations[wellknown.AnnRetry] = "1" })
	h.Horizon = time.Hour
	h.Settle()
	t.Log(strings.Join(h.Log.Lines(), "\n"))
	if len(h.Log.Lines()) == 0 {
		t.Error("the claim waits for ever, and nobody is told")
	}
	kit.Edit(h.API, kube.Key{Name: name}, func(v *corev1.PersistentVolume) { v.Finalizers = nil })
	kit.Remove[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
	h.Log.Clear()
	h.Horizon = 3 * time.Hour
	h.Settle()
	if _, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok {
		t.Error("the name is free again, and the claim is not looked at", h.Log.Lines())
	}
}
