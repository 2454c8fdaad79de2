// SPDX-License-Identifier: Apache-2.0

package content

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func TestSecretsAreLive(t *testing.T) {
	h, _ := start(t)
	h.Driver.Secrets = map[string]string{"k": "v1"}
	c := bound(h, func(c *kube.Content) {
		c.Annotations = map[string]string{wellknown.AnnSnapshotDeletionSecretName: "s", wellknown.AnnSnapshotDeletionSecretNamespace: kit.Namespace}
	})
	h.Horizon = 2 * time.Second
	h.Settle()
	if got := now(h, c); got.Annotations[wellknown.AnnBeingCreated] != "" || got.Status.Error == nil || len(h.Driver.Calls()) > 0 {
		t.Errorf("W3 a missing secret leaves no mark and makes no call: %+v", got)
	}
	h.Put(kit.Secret("s", map[string]string{"k": "v1"}))
	h.Horizon = time.Minute
	h.Settle()
	if got := now(h, c); !*got.Status.ReadyToUse {
		t.Fatalf("S4 S67 %+v", got.Status)
	}
	kit.Remove[*corev1.Secret](h.API, kube.Key{Namespace: kit.Namespace, Name: "s"})
	h.Driver.Secrets = nil
	at := h.Clock.Now()
	deleteBoth(h, c)
	h.Horizon = 10 * time.Minute
	h.Settle()
	calls := h.Driver.Calls("DeleteSnapshot")
	if waited := h.Clock.Now().Sub(at); len(calls) != 1 || waited < 2*time.Minute || len(kit.All[*kube.Content](h.API)) > 0 {
		t.Errorf("S88 W9 waited %v, calls %v", waited, calls)
	}
	if events := strings.Join(h.Recorder.Events(), "\n"); strings.Count(events, "SnapshotDeleteError") != 1 {
		t.Errorf("S88 told once: %s", events)
	}
}

// What an event advises is true: who has made the secret that was missing need not wait for the next try. Catches a room that has not
// heard of it, and one that any edit of a content makes ask the driver out of turn.
func TestRetryHastens(t *testing.T) {
	h, _ := start(t)
	c := bound(h, func(c *kube.Content) {
		c.Annotations = map[string]string{wellknown.AnnSnapshotDeletionSecretName: "s", wellknown.AnnSnapshotDeletionSecretNamespace: kit.Namespace}
	})
	h.Horizon = 20 * time.Minute // tries come every five minutes by now
	h.Settle()
	h.Put(kit.Secret("s", nil))
	h.Horizon = time.Second
	for _, step := range []struct {
		annotation string
		calls      int
	}{{"", 0}, {"example.com/note", 0}, {wellknown.AnnRetry, 1}} {
		kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { kube.SetAnnotation(c, step.annotation, "1") })
		h.Settle()
		if calls := h.Driver.Calls("CreateSnapshot"); len(calls) != step.calls {
			t.Errorf("%d calls after annotation %q\n%s", len(calls), step.annotation, h.Trace())
		}
	}
}
