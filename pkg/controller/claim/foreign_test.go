// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

const other = "other"

// kindOfGrants is the cache of grants, of a kind that the cluster may not have yet.
type kindOfGrants struct {
	*kube.Store[*kube.ReferenceGrant]
	absent  bool
	failure error
}

func (k *kindOfGrants) HasSynced() bool { return !k.absent }

func (k *kindOfGrants) Failure() error { return k.failure }

// foreign is a claim that wants to be a clone of the claim "source" of another namespace.
func foreign(t *testing.T) (*kit.Harness, *kindOfGrants) {
	h := world(t, kit.Claim("data", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: wellknown.KindPersistentVolumeClaim, Name: "source", Namespace: kit.Ptr(other)}
	}))
	handle := h.Driver.PutVolume("source-pv", 1<<30)
	source := kit.Claim("source", kit.BoundTo("source-pv"))
	source.Namespace = other
	h.Put(source, kit.Volume("source-pv", kit.ClaimedBy(source), func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = handle }))
	grants := &kindOfGrants{Store: h.Stores.Grants}
	start(h, func(o *claim.Options, d *claim.Deps) { o.CrossNamespace, d.Grants = true, grants })
	return h, grants
}

func grantTo(namespace string) *kube.ReferenceGrant {
	return &kube.ReferenceGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "grant"},
		Spec: kube.ReferenceGrantSpec{
			From: []kube.ReferenceGrantFrom{{Kind: wellknown.KindPersistentVolumeClaim, Namespace: namespace}},
			To:   []kube.ReferenceGrantTo{{Kind: wellknown.KindPersistentVolumeClaim, Name: kit.Ptr("source")}},
		},
	}
}

const (
	notAllowed     = failed + "accessing other/source of PersistentVolumeClaim dataSource from default/data isn't allowed"
	notGranted     = notAllowed + "; a ReferenceGrant in namespace other has to let PersistentVolumeClaims of namespace default refer to PersistentVolumeClaim source"
	protectForeign = `patch persistentvolumeclaims other/source {"metadata":{"finalizers":["provisioner.storage.kubernetes.io/cloning-protection"]}}`
)

// TestGrantsComeAndGo (T50, T51): a grant that is given is taken up at once, and one that is withdrawn counts no more.
func TestGrantsComeAndGo(t *testing.T) {
	h, _ := foreign(t)
	h.Horizon = 7 * time.Minute
	h.Settle()
	h.Put(grantTo("elsewhere"))
	h.Horizon = 0
	h.Settle()
	want(t, h, notGranted)
	came := h.Clock.Now()
	kit.Edit(h.API, kube.Key{Namespace: other, Name: "grant"}, func(g *kube.ReferenceGrant) { g.Spec = grantTo(kit.Namespace).Spec })
	h.Settle()
	want(t, h, notGranted, protectForeign, "driver CreateVolume "+name+created, "create persistentvolumes "+name, provisioned+name)
	if !h.Clock.Now().Equal(came) {
		t.Error("the claim was not woken")
	}

	kit.Remove[*kube.ReferenceGrant](h.API, kube.Key{Namespace: other, Name: "grant"})
	again := kit.Claim("again", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: wellknown.KindPersistentVolumeClaim, Name: "source", Namespace: kit.Ptr(other)}
	})
	h.Log.Clear()
	h.Put(again)
	h.Settle()
	want(t, h, "event default/again: Warning ProvisioningFailed accessing other/source of PersistentVolumeClaim dataSource from default/again isn't allowed; a ReferenceGrant in namespace other has to let PersistentVolumeClaims of namespace default refer to PersistentVolumeClaim source")
}

// TestNoKindOfGrants (W25): a cluster without the kind is told of where somebody wants it, and hinders nobody else;
// once the kind is there the claim goes on. Catches one that waits for a cache which never fills.
func TestNoKindOfGrants(t *testing.T) {
	h, grants := foreign(t)
	grants.absent, grants.failure = true, errors.New("the server could not find the requested resource")
	h.Put(kit.Claim("plain"))
	h.Horizon = time.Second
	h.Settle()
	plain := "pvc-" + string(kit.Claim("plain").UID)
	text := notAllowed + ": ReferenceGrants cannot be read: the server could not find the requested resource; " +
		"sources in other namespaces need the ReferenceGrant CRD (gateway.networking.k8s.io/v1beta1) and the right to list and watch referencegrants"
	want(t, h, text, "driver CreateVolume "+plain+created, "create persistentvolumes "+plain,
		"event default/plain: Normal ProvisioningSucceeded Successfully provisioned volume "+plain)
	grants.absent, grants.failure = false, nil
	h.Put(grantTo(kit.Namespace))
	h.Horizon = 0
	h.Settle()
	if volume, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok {
		t.Error("the claim has no volume", volume)
	}
}

// TestGrantsAreListedLate: right after the start nobody is alarmed.
func TestGrantsAreListedLate(t *testing.T) {
	h, grants := foreign(t)
	grants.absent = true
	h.Horizon = 0
	h.Settle()
	want(t, h, "event default/data: Normal ProvisioningFailed accessing other/source of PersistentVolumeClaim dataSource from default/data isn't allowed: ReferenceGrants cannot be read: they are not listed yet; if that stays so, the log of the provisioner names the right that it lacks")
}

// TestAttributesClassesAreNotServed (T27): a cluster that certainly lacks the kind switches the feature off; not to know
// does not.
func TestAttributesClassesAreNotServed(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want bool
	}{
		"served":    {nil, true},
		"unserved":  {apierrors.NewGenericServerResponse(404, "get", kube.ResourceOf[*kube.ReferenceGrant]().GroupResource(), "", "404 page not found", 0, true), false},
		"forbidden": {apierrors.NewForbidden(kube.ResourceOf[*kube.ReferenceGrant]().GroupResource(), "x", errors.New("no")), true},
		"down":      {apierrors.NewInternalError(errors.New("etcd")), true},
	} {
		h := kit.New(t)
		if row.err != nil {
			h.API.Fail("get", "volumeattributesclasses", row.err, 1)
		}
		if got := claim.FetchAttributesServed(h.Ctx, h.API); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	h := world(t, kit.Claim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = kit.Ptr("gold") }))
	start(h, func(o *claim.Options, _ *claim.Deps) { o.AttributesClass = false })
	h.Settle()
	if volume, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok || volume.Spec.VolumeAttributesClassName != nil {
		t.Error("T27: the class was not ignored", volume)
	}
}

// TestOldClassAnnotation (T07): the class of the annotation makes the volume, and is what the volume says.
func TestOldClassAnnotation(t *testing.T) {
	h := world(t, kit.With(kit.Claim("data"), kit.Annotation(wellknown.AnnBetaStorageClass, "old")))
	old := kit.Class("old")
	old.Parameters = map[string]string{"tier": "old"}
	h.Put(old)
	start(h)
	h.Settle()
	volume, _ := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
	if volume == nil || volume.Spec.StorageClassName != "old" || requests(h)[0].Parameters["tier"] != "old" {
		t.Errorf("%+v, %v", volume, requests(h))
	}
}
