// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// As TestKeptWithoutTheRightIsNotResumed, but the right comes with another process, as it does when manifests are applied anew. Catches a process without the
// right that counts as one of those whose record can be trusted.
func TestKeptWithoutTheRightIsNotResumedByTheNext(t *testing.T) {
	for _, verb := range []string{"patch", ""} {
		h := world(t, kit.Claim("data"))
		first, led, disowned, asked := int64(1), int64(0), false, 0
		lead := func() { // each notes its time on the lease
			if led++; disowned {
				first, disowned = led, false
			}
			tenure := kube.Tenure{Lease: "lease", First: first, Last: led}
			startRecorded(h, func(_ *claim.Options, d *claim.Deps) {
				d.Record = &claim.Recording{
					Tenure: func() kube.Tenure { return tenure },
					Disown: func() bool { asked++; disowned = asked > 1; return disowned }, // the next renewal has it off
					Own:    func() { disowned = false },
				}
			})
		}
		h.Play(kit.Binder(h.API))
		h.Horizon = time.Second
		var grant func()
		h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: func() { grant = h.API.Deny(verb, "configmaps") }})
		lead()
		h.Settle()
		h.Restart()
		lead()
		h.Settle()
		pv := kube.Key{Name: name}
		kit.Edit(h.API, pv, func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
		h.Horizon = time.Minute
		h.Settle()
		kit.Remove[*corev1.PersistentVolume](h.API, pv)
		h.Settle()
		if _, stays := kit.Read[*corev1.PersistentVolume](h.API, pv); stays {
			t.Fatal("it stays", h.Trace())
		}
		h.Restart()
		grant()
		lead()
		h.Horizon = time.Hour
		h.Settle()
		if left := h.Driver.Inventory(); len(left) != 1 || len(h.Driver.Calls("DeleteVolume")) != 0 {
			t.Errorf("%q: the data that was kept is gone: left %v\n%v", verb, left, strings.Join(effects(h), "\n"))
		}
	}
}
