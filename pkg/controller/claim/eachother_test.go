// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// A claim's first answer is lost; somebody writes a PersistentVolume of the claim's own name for what was made, for another claim, which goes. Catches the
// two waiting for each other.
func TestLeavingUnderOwnName(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Driver.Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Done: true})
	startRecorded(h)
	h.Horizon = 0
	h.Settle()
	v0 := kit.Volume(name, kit.ClaimedBy(kit.Claim("other")))
	v0.Status.Phase = corev1.VolumeReleased
	v0.Finalizers = []string{"external-provisioner.volume.kubernetes.io/finalizer"}
	v0.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	v0.Spec.CSI.VolumeHandle = kit.VolumeHandle(name)
	h.Put(v0)
	h.Horizon, h.MaxTurns = time.Hour, 100000
	h.Settle()
	v, _ := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
	if v != nil && v.Spec.ClaimRef.Name == "other" {
		lines := h.Log.Lines()
		t.Error("the PersistentVolume and the claim wait for each other\n", strings.Join(lines[:min(len(lines), 30)], "\n"))
	}
}

// As TestKeptWhileItsNodeWasDown, without the right to ConfigMaps, as with the rights that external-provisioner needs. Catches a PersistentVolume that waits for what nobody may read.
func TestOtherNodesVolumeWithoutRightToRecord(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.Class(kit.ClassName), kit.Claim("data", kit.OnNode("n1")))
	h.Driver.Capabilities = localCapabilities()
	h.Play(kit.Binder(h.API))
	no := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", fmt.Errorf("no right"))
	for _, verb := range []string{"get", "create", "patch"} {
		h.API.Script(kit.Rule{Verb: verb, Resource: "configmaps", Err: no})
	}
	sharing(h, "n1")
	h.Horizon = 0
	h.Settle()
	h.Restart()
	sharing(h, "n2")
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
	h.Horizon = 2 * time.Hour
	h.Settle()
	if _, stays := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); stays {
		lines := h.Log.Lines()
		t.Error("it stays for ever, left:", h.Driver.Inventory(), "\n", strings.Join(lines[:min(len(lines), 30)], "\n"))
	}
}
