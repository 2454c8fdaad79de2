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

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// As TestKeptOffItsClaimIsNotResumed, with names that do not end with the whole UID. Catches a look for the claim that knows only such names.
func TestKeptUnderAShortName(t *testing.T) {
	for title, edit := range map[string]func(*claim.Options){
		"short":    func(o *claim.Options) { o.NameLength = 8 },
		"template": func(o *claim.Options) { o.NameTemplate = "{uid}-{name}" },
	} {
		t.Run(title, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.Play(kit.Binder(h.API))
			h.Horizon = time.Minute
			var mend func()
			h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: func() {
				mend = h.API.Script(kit.Rule{Verb: "patch", Resource: "configmaps", Err: apierrors.NewInternalError(fmt.Errorf("etcd"))})
			}})
			options := func(o *claim.Options, _ *claim.Deps) { edit(o) }
			startRecorded(h, options)
			h.Settle()
			pv := kube.Key{Name: kit.All[*corev1.PersistentVolume](h.API)[0].Name}
			t.Log(pv)
			kit.Edit(h.API, pv, func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			})
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
			h.Settle() // the finalizer waits for the record
			kit.Edit(h.API, pv, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil })
			h.Settle()
			kit.Remove[*corev1.PersistentVolume](h.API, pv)
			h.Settle()
			_, stays := kit.Read[*corev1.PersistentVolume](h.API, pv)
			t.Log("PV stays:", stays, "on record:", onRecord(h))
			h.Restart()
			mend()
			startRecorded(h, options)
			h.Horizon = time.Hour
			h.Settle()
			if left := h.Driver.Inventory(); len(left) != 1 || len(h.Driver.Calls("DeleteVolume")) != 0 {
				t.Errorf("the data that was kept is gone: left %v\n%s", left, strings.Join(effects(h), "\n"))
			}
		})
	}
}

// Somebody has made the record immutable. Catches claims that wait without a word.
func TestImmutableRecord(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Play(kit.Binder(h.API))
	startRecorded(h)
	h.API.Script(kit.Rule{Verb: "patch", Resource: "configmaps", Err: apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "driver-attempts-0", nil)})
	h.Horizon = time.Hour
	h.Settle()
	t.Log(strings.Join(h.Log.Lines(), "\n"))
	for _, l := range h.Log.Lines() {
		if strings.HasPrefix(l, "event") {
			return
		}
	}
	t.Error("the claim waits for an hour, and nobody is told")
}

// A removal is done and its answer lost, and the next is told that there is nothing. Catches an event that says so, although one of the calls has done it.
func TestRemovedAndTold(t *testing.T) {
	h := world(t, kit.Claim("data"))
	startRecorded(h)
	h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Done: true}, kit.Reply{Code: codes.NotFound, Text: "no such volume"})
	h.Settle()
	for _, l := range h.Log.Lines() {
		if strings.Contains(l, "has deleted nothing") {
			t.Error("it was deleted by the first call:", l)
		}
	}
}
