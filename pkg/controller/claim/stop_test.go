// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// The last lines of a process are all that is known of a volume whose claim goes before the next start.
func TestStopNamesWhatIsUnsettled(t *testing.T) {
	open, done := kit.Claim("open"), kit.Claim("done")
	h := world(t, open, done) // one call in doubt, one in order
	room := start(h)
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "late", Done: true})
	stored, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(open))
	_, _ = room.Reconcile(h.Ctx, reconcile.Key{Namespace: stored.Namespace, Name: stored.Name, UID: stored.UID})
	other, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(done))
	_, _ = room.Reconcile(h.Ctx, reconcile.Key{Namespace: other.Namespace, Name: other.Name, UID: other.UID})

	var log strings.Builder
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), funcr.New(func(_, line string) { log.WriteString(line + "\n") }, funcr.Options{})))
	cancel()
	if err := room.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), wellknown.VolumeNameFromUID(string(stored.UID))) {
		t.Errorf("the open call is not named:\n%s", log.String())
	}
	if strings.Contains(log.String(), string(other.UID)) {
		t.Errorf("a settled one is named:\n%s", log.String())
	}
}
