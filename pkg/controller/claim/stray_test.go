// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestStrayVolumeThatMayBeGone: the removal of such a volume was asked for and not answered, and the claim comes back. Catches a
// process that still trusts the answer from before: the PersistentVolume would have nothing behind it.
func TestStrayVolumeThatMayBeGone(t *testing.T) {
	n := onNodes(t, map[string]int64{"n1": 10 * gib, "n2": 10 * gib}, kit.Class(kit.ClassName, kit.WaitForConsumer), kit.Claim("data", kit.OnNode("n1")))
	n.drivers["n1"].Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Done: true})
	n.drivers["n1"].Next("DeleteVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Done: true, Times: 5})
	n.drivers["n2"].Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Times: 99})
	n.Horizon = 0
	n.Settle() // made on n1, and the answer was lost
	kit.Edit(n.API, dataKey, kit.OnNode("n2"))
	n.Settle()
	if got := len(n.drivers["n1"].Calls("DeleteVolume")); got != 5 {
		t.Fatalf("%d calls\n%s", got, n.Trace())
	}
	kit.Edit(n.API, dataKey, kit.OnNode("n1"))
	n.Horizon = 30 * time.Minute
	n.Settle()
	if volumes := kit.All[*corev1.PersistentVolume](n.API); len(volumes) != 1 || n.made()["n1"] != 1 {
		t.Errorf("%d PersistentVolumes, volumes on %v\n%s", len(volumes), n.made(), n.Trace())
	}
}

// TestStrayVolumeWithoutItsSecret: the claim has a volume of another node, and its namespace takes claim and secret along before the stray one is
// removed. Catches a node that waits for the secret for ever, with the volume at its driver.
func TestStrayVolumeWithoutItsSecret(t *testing.T) {
	n := onNodes(t, map[string]int64{"n1": 10 * gib}, kit.Claim("data", kit.OnNode("n1")), kit.Secret("s", map[string]string{"key": "v"}),
		kit.Class(kit.ClassName, kit.WaitForConsumer, func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{wellknown.ParamSecretName: "s", wellknown.ParamSecretNamespace: kit.Namespace}
		}))
	n.drivers["n1"].Next("CreateVolume", kit.Reply{Meanwhile: func() {
		n.Stores.Hold() // a node does not see the volumes of others
		n.Put(kit.Volume(name, kit.ClaimedBy(kit.Claim("data")), func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef.UID, v.Spec.CSI.VolumeHandle = dataUID.UID, "of-n2"
		}))
		kit.Remove[*corev1.PersistentVolumeClaim](n.API, dataKey)
		kit.Remove[*corev1.Secret](n.API, kube.Key{Namespace: kit.Namespace, Name: "s"})
		n.Stores.Claims.Drop(kit.Claim("data", func(c *corev1.PersistentVolumeClaim) { c.UID = dataUID.UID }))
	}})
	n.Horizon = 30 * time.Minute
	n.Settle()
	if left := n.drivers["n1"].Inventory(); len(left) != 0 {
		t.Errorf("left at the driver: %v\n%s", left, n.Trace())
	}
}

// madeOnN2 is a PersistentVolume that the process of n2 has written for the claim, and that is to be reached from some hosts, or does not
// say from where.
func madeOnN2(handle, key string, hosts ...string) *corev1.PersistentVolume {
	return kit.Volume(name, kit.ClaimedBy(kit.Claim("data")), func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef.UID, v.Spec.CSI.VolumeHandle = dataUID.UID, handle
		v.Spec.CSI.VolumeAttributes = map[string]string{wellknown.VolumeAttributeIdentity: "1-2-" + kit.DriverName + "-n2"}
		if len(hosts) > 0 {
			v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: hosts}},
			}}}}
		}
	})
}

// TestStrayVolumeOfTheSameHandle: drivers whose ids are names give the same one on each node. The call of n1 is slow, the scheduler chooses n2, and
// the process there writes the PersistentVolume. Catches a node that takes it for its own: its volume would stay, told as provisioned. And catches
// one that removes what may be the very volume of the claim, because another node made it or its place is told in words that are not known here.
func TestStrayVolumeOfTheSameHandle(t *testing.T) {
	same := kit.VolumeHandle(name)
	for title, c := range map[string]struct {
		volume *corev1.PersistentVolume
		left   int
	}{
		"on n2 only":                     {madeOnN2(same, "host", "n2"), 0},
		"on n2 only, another handle":     {madeOnN2("of-n2", "host", "n2"), 0},
		"on both":                        {madeOnN2(same, "host", "n1", "n2"), 1},
		"it does not say where":          {madeOnN2(same, ""), 1},
		"in words of another time":       {madeOnN2(same, "rack", "r2"), 1},
		"on both, another handle":        {madeOnN2("of-n2", "host", "n1", "n2"), 0},
		"does not say, another handle":   {madeOnN2("of-n2", ""), 0},
		"written by hand for another":    {byHand(madeOnN2(same, "host", "n2")), 1},
		"made by a central one long ago": {byCentral(madeOnN2(same, "host", "n2")), 1},
	} {
		for seen, bound := range map[string]bool{"as it was": false, "bound": true} {
			t.Run(title+", n1 sees the claim "+seen, func(t *testing.T) {
				n := onNodes(t, map[string]int64{"n1": 10 * gib}, kit.Class(kit.ClassName, kit.WaitForConsumer), kit.Claim("data", kit.OnNode("n1")))
				n.drivers["n1"].Next("CreateVolume", kit.Reply{Meanwhile: func() {
					if bound {
						kit.Edit(n.API, dataKey, func(c *corev1.PersistentVolumeClaim) { kit.OnNode("n2")(c); c.Spec.VolumeName = name })
					}
					n.Stores.Hold() // a node does not see the volumes of others
					n.Put(c.volume)
				}})
				n.Horizon = 30 * time.Minute
				n.Settle()
				if left := n.drivers["n1"].Inventory(); len(left) != c.left {
					t.Errorf("left at n1: %v\n%s", left, n.Trace())
				}
			})
		}
	}
}

func byHand(v *corev1.PersistentVolume) *corev1.PersistentVolume {
	v.Spec.CSI.VolumeAttributes = nil
	return v
}

func byCentral(v *corev1.PersistentVolume) *corev1.PersistentVolume {
	v.Spec.CSI.VolumeAttributes[wellknown.VolumeAttributeIdentity] = "1-2-" + kit.DriverName
	return v
}
