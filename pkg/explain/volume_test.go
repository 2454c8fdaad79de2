// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func ofVolume(step, says, advises string) expectation {
	return expectation{provisioner, kindVolume, step, says, advises}
}

// bound is a claim and its volume, which may have been edited.
func bound(edits ...func(*corev1.PersistentVolume)) []kube.Object {
	c := kit.With(kit.Claim("data", kit.BoundTo("pv")), kit.Finalizers("kubernetes.io/pvc-protection"))
	v := kit.With(kit.Volume("pv", kit.ClaimedBy(c)), kit.Finalizers("kubernetes.io/pv-protection", wellknown.FinalizerVolume))
	for _, edit := range edits {
		edit(v)
	}
	return []kube.Object{c, v, kit.Class(kit.ClassName)}
}

// released is a volume whose claim is going.
func released(edits ...func(*corev1.PersistentVolume)) []kube.Object {
	objects := bound(append(edits, kit.Released)...)
	kit.Deleted(objects[0].(*corev1.PersistentVolumeClaim))
	return objects
}

func going(v *corev1.PersistentVolume) { kit.Deleted(v) }

// TestVolumes goes through what the volume of a bound claim waits for.
func TestVolumes(t *testing.T) {
	recorded := func(v *corev1.PersistentVolume) {
		kube.SetAnnotation(v, wellknown.AnnDeletionSecretName, "creds")
		kube.SetAnnotation(v, wellknown.AnnDeletionSecretNamespace, kit.Namespace)
	}
	for _, c := range []struct {
		name    string
		objects []kube.Object
		want    expectation
	}{
		{"bound", bound(), ofVolume("Ignore", "the volume is not released", "")},
		{"bound and not protected", bound(func(v *corev1.PersistentVolume) { v.Finalizers = nil }), ofVolume("Protect", "Puts the finalizer", "")},
		{"deleted before its claim", bound(going), ofVolume("Ignore", "the volume is not released", "delete the claim first")},
		{"to be kept", bound(func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}), ofVolume("Unprotect", "is to be kept", "")},
		{"attached", append(released(), kit.Attachment("a", "pv", "n1")),
			ofVolume("WaitDetached", "still attached to node n1", "see what still uses the volume on node n1")},
		{"released", released(recorded), ofVolume("Delete", "Asks the driver to delete volume", "")},
		{"not a CSI volume", released(func(v *corev1.PersistentVolume) { v.Spec.CSI = nil }), ofVolume("Reject", "invalid CSI PV", "delete it by hand")},
		{"released by mistake", bound(kit.Released), ofVolume("Reject", "claim default/data exists and names PersistentVolume pv", "set spec.claimRef.uid")},
		{"gone", bound()[:1], expectation{provisioner, kindVolume, "", "could not be read", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(c.objects...)
			report := explainClaim(t, h, askedDriver(flat()))
			m := c.want.check(t, report)
			ofClaim("Ignore", "the claim has a volume", "").check(t, report)
			if m.Step == "Delete" && (m.Request == nil || m.Request.Secret != "default/creds") {
				t.Errorf("the request is %+v", m.Request)
			}
			if m.Step == "Delete" {
				return // the room would go on to call the driver
			}
			runVolumes(h, flat())
			sameWords(t, h, m.Event)
		})
	}
}

// TestHolders: every finalizer is told, with who lifts it, also those of others.
func TestHolders(t *testing.T) {
	h := kit.New(t)
	h.Put(bound(func(v *corev1.PersistentVolume) {
		kube.AddFinalizer(v, "external-attacher/tandem-csi-example", "a.example/b")
	})...)
	report := explainClaim(t, h, askedDriver(flat()))
	for finalizer, who := range map[string]string{
		"kubernetes.io/pvc-protection": "no pod uses the claim", "kubernetes.io/pv-protection": "Kubernetes",
		wellknown.FinalizerVolume: "the provisioner", "external-attacher/tandem-csi-example": "the external-attacher", "a.example/b": "somebody else",
	} {
		found := ""
		for _, holder := range report.Holders {
			if holder.Finalizer == finalizer {
				found = holder.Lifted
			}
		}
		if !strings.Contains(found, who) {
			t.Errorf("%s: %q, want %q in it", finalizer, found, who)
		}
	}
	golden(t, "bound.txt", written(t, report, "text"))
}

// TestCloneSource: a claim that goes and that clones are made from says which of them holds it.
func TestCloneSource(t *testing.T) {
	h := kit.New(t)
	source := kit.With(kit.Claim("data", kit.BoundTo("pv")), kit.Finalizers(wellknown.FinalizerCloneSource), kit.Deleted)
	clone := kit.Claim("copy", kit.FromClaim("data"))
	clone.CreationTimestamp = metav1.NewTime(kit.Start.Add(-1))
	h.Put(source, clone, kit.Class(kit.ClassName))
	report := explainClaim(t, h, askedDriver(flat()))
	if m := report.Machines[len(report.Machines)-1]; m.Step != "Hold" || !strings.Contains(m.Sentence, "claim default/copy") {
		t.Error(written(t, report, "text"))
	}
}

// TestRights: what the user may not read is named, and the rest is told all the same.
func TestRights(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.Claim("data", kit.OnNode("n1")), kit.Class(kit.ClassName), kit.Node("n1", map[string]string{"zone": "a"}), kit.CSINode("n1", "zone"))
	t.Run("volumes, nodes and events", func(t *testing.T) {
		for _, resource := range []string{"persistentvolumes", "events"} {
			defer h.API.Deny("get", resource)()
			defer h.API.Deny("list", resource)()
		}
		defer h.API.Deny("list", "csinodes")()
		report := explainClaim(t, h, askedDriver(placed()))
		m := ofClaim("Create", "nothing is in the way", "").check(t, report)
		doubts := strings.Join(m.Doubts, "; ") + strings.Join(report.Notes, "; ")
		for _, what := range []string{"reading persistentvolumes pvc-", "listing csinodes: not allowed to you", "listing events: not allowed"} {
			if !strings.Contains(doubts, what) {
				t.Errorf("%q is not in %q", what, doubts)
			}
		}
	})
	t.Run("the class decides", func(t *testing.T) {
		defer h.API.Deny("get", "storageclasses")()
		report := explainClaim(t, h, askedDriver(placed()))
		ofClaim("", "the StorageClass, which could not be read", "ask somebody").check(t, report)
	})
	t.Run("the claim itself", func(t *testing.T) {
		defer h.API.Deny("get", "persistentvolumeclaims")()
		_, err := Claim(h.Ctx, setting(h, askedDriver(flat())), Provisioner{Claim: *claim.NewOptions()}, kit.Namespace, "data")
		if err == nil || !strings.Contains(err.Error(), "reading claim default/data") {
			t.Error(err)
		}
	})
	if _, err := Claim(h.Ctx, setting(h, askedDriver(flat())), Provisioner{Claim: *claim.NewOptions()}, kit.Namespace, "nope"); err == nil {
		t.Error("a claim that does not exist was explained")
	}
}

// TestReaderRefuses: whoever holds the client of an explanation cannot write, nor read a secret.
func TestReaderRefuses(t *testing.T) {
	h := kit.New(t)
	c := kit.Claim("data")
	h.Put(c, kit.Secret("creds", map[string]string{"password": canary}))
	client := &reader{under: h.API}
	_, patched := kube.Patch(h.Ctx, client, c, func(o *corev1.PersistentVolumeClaim) { kube.AddFinalizer(o, "x/y") })
	_, created := kube.Create(h.Ctx, client, kit.Claim("other"))
	_, fetched := kube.FetchSecret(h.Ctx, client, kube.Key{Namespace: kit.Namespace, Name: "creds"})
	_, listed := client.List(h.Ctx, kube.ResourceOf[*corev1.Secret](), "", metav1.ListOptions{})
	_, watched := client.Watch(h.Ctx, kube.ResourceOf[*corev1.PersistentVolume](), "", metav1.ListOptions{})
	for what, err := range map[string]error{
		"patch": patched, "create": created, "delete": kube.Delete(h.Ctx, client, c), "secret": fetched, "secrets": listed, "watch": watched,
	} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if requests := h.API.Requests(); len(requests) > 0 {
		t.Errorf("sent: %v", requests)
	}
}
