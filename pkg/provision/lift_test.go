// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

func TestNextSourceStep(t *testing.T) {
	snapshot := &snapv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns1", Name: "snap", Finalizers: []string{"foreign", wellknown.FinalizerSnapshotAsSource}}}
	bare := &snapv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"foreign", wellknown.FinalizerSnapshotSource}}}
	living := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns1", Name: "source", Finalizers: []string{wellknown.FinalizerCloneSource}}}
	dying := living.DeepCopy()
	dying.DeletionTimestamp = gone

	user := func(edit func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		claim := plain().Claim
		edit(claim)
		return claim
	}
	waiting := user(func(*corev1.PersistentVolumeClaim) {})
	pending := user(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending })
	bound := user(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase, c.Spec.VolumeName = corev1.ClaimBound, "v" })
	late := user(func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = metav1.NewTime(now) })
	going := user(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = gone })

	foreign := user(func(c *corev1.PersistentVolumeClaim) {
		c.Namespace = "ns2"
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "source", Namespace: ptr.To("ns1")}
	})
	granting := func(namespace string) Grants {
		return Grants{All: []Grant{{
			From: []GrantFrom{{Kind: "PersistentVolumeClaim", Namespace: namespace}},
			To:   []GrantTo{{Kind: "PersistentVolumeClaim", Name: "source"}},
		}}}
	}

	const kind, claimKind = wellknown.KindVolumeSnapshot, wellknown.KindPersistentVolumeClaim
	for _, c := range []struct {
		name string
		in   SourceInput
		want string
	}{
		{"T35 nobody left", SourceInput{Kind: kind, Object: snapshot, Users: []*corev1.PersistentVolumeClaim{bound}}, "Lift"},
		{"T102 an orphan", SourceInput{Kind: kind, Object: snapshot}, "Lift"},
		{"W3 T103 one of two is done", SourceInput{Kind: kind, Object: snapshot, Users: []*corev1.PersistentVolumeClaim{bound, pending}}, "Hold: claim ns1/data"},
		{"W19 T102 no phase yet", SourceInput{Kind: kind, Object: snapshot, Users: []*corev1.PersistentVolumeClaim{waiting}}, "Hold: claim ns1/data"},
		{"B005 the claim is gone, the call is not", SourceInput{Kind: kind, Object: snapshot, InUse: true}, "Hold: a volume that is being made"},
		{"a terminating claim gets no volume any more", SourceInput{Kind: kind, Object: snapshot, Users: []*corev1.PersistentVolumeClaim{going}}, "Lift"},
		{"not protected by us", SourceInput{Kind: kind, Object: bare}, "Ignore: the source is gone or not protected by us"},
		{"gone", SourceInput{Kind: kind}, "Ignore: the source is gone or not protected by us"},
		{"T101 a living source claim", SourceInput{Kind: claimKind, Object: living}, "Ignore: the source claim is not being deleted"},
		{"T101 a terminating source claim with a clone under way", SourceInput{Kind: claimKind, Object: dying, Users: []*corev1.PersistentVolumeClaim{pending}}, "Hold: claim ns1/data"},
		{"B005 a claim that came after the deletion holds nothing", SourceInput{Kind: claimKind, Object: dying, Users: []*corev1.PersistentVolumeClaim{late}}, "Lift"},
		{"T101 a claim of another namespace that has a grant", SourceInput{Kind: claimKind, Object: dying, Users: []*corev1.PersistentVolumeClaim{foreign}, Grants: granting("ns2")}, "Hold: claim ns2/data"},
		{"T101 one that nothing is known of", SourceInput{Kind: claimKind, Object: dying, Users: []*corev1.PersistentVolumeClaim{foreign}, Grants: Grants{Unknown: errors.New("not listed")}}, "Hold: claim ns2/data"},
		{"T101 a stranger holds nothing", SourceInput{Kind: claimKind, Object: dying, Users: []*corev1.PersistentVolumeClaim{foreign}, Grants: granting("ns3")}, "Lift"},
		{"T101 a stranger does not hide who holds it", SourceInput{Kind: claimKind, Object: dying, Users: []*corev1.PersistentVolumeClaim{foreign, pending}}, "Hold: claim ns1/data"},
		{"B005 a stranger for whom it has begun", SourceInput{Kind: claimKind, Object: dying, Users: []*corev1.PersistentVolumeClaim{foreign}, InUse: true}, "Hold: a volume that is being made"},
		{"T101 a terminating source claim after its last clone", SourceInput{Kind: claimKind, Object: dying, Users: []*corev1.PersistentVolumeClaim{bound}}, "Lift"},
	} {
		t.Run(c.name, func(t *testing.T) {
			step := NextSourceStep(c.in)
			got := show(step)
			if hold, ok := step.(Hold); ok {
				got = "Hold: " + hold.By
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
