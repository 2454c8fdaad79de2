// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// documentOf is what is on record of a claim.
func documentOf(h *kit.Harness, uid string) attempt.Document {
	object, _ := kit.Read[*corev1.ConfigMap](h.API, recordKey)
	names, body, _ := strings.Cut(object.Data[uid], "\n")
	d := attempt.Document{Body: body, Parts: map[string]string{}}
	for name := range strings.SplitSeq(names, ",") {
		d.Parts[name] = object.Data["part."+name]
	}
	return d
}

// TestOvertakenLeavesKept: a process stands still before it records an attempt, in an object that is not there yet; another one takes over, and makes
// the volume. The first goes on, finds that it was overtaken, and calls nobody. The data of the claim is kept on purpose, and a third process comes.
// Catches an entry that stays on record although nobody has settled it: the third would ask for the volume by its name, get what was kept, and remove it.
func TestOvertakenLeavesKept(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Play(kit.Binder(h.API))
	h.Horizon = 10 * time.Minute
	slow := attempt.New(attempt.Options{Client: h.API, Clock: h.Clock, Namespace: recordKey.Namespace, Name: "driver-attempts", Holder: "slow", ShardBytes: 20 << 10})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(slow.Begin(h.Ctx))
	must(slow.Put(h.Ctx, "of-another", attempt.Document{Body: strings.Repeat("x", 20<<10-100)}))
	var d attempt.Document
	h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: func() { d = documentOf(h, string(dataUID.UID)) }})
	startRecorded(h)
	h.Settle()
	if err := slow.Put(h.Ctx, dataUID.UID, d); !errors.Is(err, attempt.ErrForeign) || d.Body == "" {
		t.Fatal("two write:", err)
	}
	claim, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, dataKey)
	key := kube.Key{Name: claim.Spec.VolumeName}
	kit.Edit(h.API, key, func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
	h.Settle()
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
	h.Settle()
	kit.Remove[*corev1.PersistentVolume](h.API, key)
	h.Settle()
	for _, process := range []string{"the same", "the next"} {
		if n := len(h.Driver.Inventory()); n != 1 {
			t.Errorf("%s: kept are %v\n%s", process, h.Driver.Inventory(), h.Trace())
		}
		h.Restart()
		startRecorded(h)
		h.Settle()
	}
}
