// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestWrittenByHandIsTold: a PersistentVolume ends the request for the claim, and it is not the provisioner that has written it. Whether it has what
// the driver has made is for a person to see, who is told of what name to look for, also when the claim is gone. Catches one that says that all went well, and
// one that makes a fuss about the PersistentVolume of a process before it, whose end the record has not heard of.
func TestWrittenByHandIsTold(t *testing.T) {
	help := "; it ends the request, and the driver is not asked any more: if it does not have what the driver made, find the volume with the name " + name + " at the driver and delete it there"
	byHand := func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "another" }
	slow := kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Done: true}
	for _, c := range []struct {
		name    string
		reply   kit.Reply
		written func(*corev1.PersistentVolume)
		gone    bool
		want    string
	}{
		{"outcome open", slow, byHand, false, failed + "PersistentVolume " + name + " was written by hand while it was open whether the driver has made a volume for the claim" + help},
		{"and the claim is gone", slow, byHand, true, failed + "PersistentVolume " + name + " was written by hand while it was open whether the driver has made a volume for the claim" + help},
		{"the driver has answered", kit.Reply{}, byHand, false, failed + "PersistentVolume " + name + ` is not of volume "` + kit.VolumeHandle(name) + `", which the driver has made for the claim` + help},
		{"the driver has answered, and it has that", kit.Reply{}, func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = kit.VolumeHandle(name) }, false, provisioned + name},
		{"a process before it", slow, func(v *corev1.PersistentVolume) { v.Annotations[wellknown.AnnDeletionSecretName] = "" }, false, provisioned + name},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.Driver.Next("CreateVolume", c.reply)
			h.API.Fail("create", "persistentvolumes", apierrors.NewServiceUnavailable("no"), 1)
			start(h)
			h.Horizon = time.Millisecond
			h.Settle()
			h.Log.Clear()
			if c.gone {
				kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
			}
			h.Put(kit.Volume(name, kit.ClaimedBy(kit.Claim("data")), c.written))
			h.Enqueue("claim", dataUID)
			h.Horizon = time.Hour
			h.Settle()
			told := slices.DeleteFunc(h.Log.Lines(), func(line string) bool { return !strings.HasPrefix(line, "event default/data") })
			if len(told) != 1 || !strings.HasPrefix(told[0], c.want) || len(requests(h)) != 1 {
				t.Errorf("told is %q, want %q; %d calls", told, c.want, len(requests(h)))
			}
		})
	}
}
