// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// reading are the secrets that were asked for, each once.
func reading(h *kit.Harness) (names []string) {
	for _, r := range h.API.Requests() {
		if r.Resource == "secrets" {
			names = append(names, r.String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// wishful is a claim whose owner has written all that is protocol on it, in the hope for the secret of somebody else.
func wishful(t *testing.T) *corev1.PersistentVolumeClaim {
	c := kit.Claim("data")
	for _, key := range kit.ProtocolKeys(t, "../../wellknown") {
		switch key {
		case wellknown.AnnStorageProvisioner, wellknown.AnnBetaStorageProvisioner, wellknown.AnnBetaStorageClass, wellknown.AnnSelectedNode:
			// These say which driver, class and node are meant, and whoever makes a claim may choose those.
		default:
			kube.SetAnnotation(c, key, "theirs")
		}
	}
	return c
}

// TestNoAnnotationChoosesASecret: what is written on a claim decides about a secret only where the class says so, and never
// about its namespace. Catches a room that looks for the names of secrets on the claim, as it does on volumes, and one that
// copies annotations from claims to volumes, where they would count.
func TestNoAnnotationChoosesASecret(t *testing.T) {
	with := func(name, namespace string) func(*storagev1.StorageClass) {
		return func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{wellknown.ParamSecretName: name, wellknown.ParamSecretNamespace: namespace}
		}
	}
	for _, c := range []struct {
		name  string
		class func(*storagev1.StorageClass)
		want  []string
	}{
		{"a class without secrets", func(*storagev1.StorageClass) {}, nil},
		{"the class's own", with("ours", "storage"), []string{"get secrets storage/ours"}},
		{"one of the claim's namespace", with("ours", "${pvc.namespace}"), []string{"get secrets default/ours"}},
		{"the class leaves the name to the claim", with("${pvc.annotations['"+wellknown.AnnDeletionSecretName+"']}", "storage"), []string{"get secrets storage/theirs"}},
		{"but never the namespace", with("ours", "${pvc.annotations['"+wellknown.AnnDeletionSecretNamespace+"']}"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Driver.Capabilities = can()
			secrets := []*corev1.Secret{kit.Secret("ours", nil), kit.Secret("theirs", nil)}
			for _, namespace := range []string{kit.Namespace, "storage", "theirs", "kube-system"} {
				for _, s := range secrets {
					s := s.DeepCopy()
					s.Namespace = namespace
					h.Put(s)
				}
			}
			h.Put(kit.Class(kit.ClassName, c.class), wishful(t))
			start(h)
			h.Settle()
			if d := cmp.Diff(c.want, reading(h)); d != "" {
				t.Errorf("secrets read (-want +got):\n%s\n%s", d, h.Trace())
			}
			for _, v := range kit.All[*corev1.PersistentVolume](h.API) {
				wantRefs(t, v, c.want)
			}
		})
	}
}

// wantRefs: what is on record for the deletion, and for the node, is what was read.
func wantRefs(t *testing.T, v *corev1.PersistentVolume, want []string) {
	t.Helper()
	refs := []string{v.Annotations[wellknown.AnnDeletionSecretNamespace] + "/" + v.Annotations[wellknown.AnnDeletionSecretName]}
	for _, ref := range []*corev1.SecretReference{v.Spec.CSI.NodeStageSecretRef, v.Spec.CSI.NodePublishSecretRef, v.Spec.CSI.ControllerPublishSecretRef,
		v.Spec.CSI.ControllerExpandSecretRef, v.Spec.CSI.NodeExpandSecretRef} {
		if ref != nil {
			refs = append(refs, ref.Namespace+"/"+ref.Name)
		}
	}
	slices.Sort(refs)
	refs = slices.DeleteFunc(slices.Compact(refs), func(ref string) bool { return ref == "/" })
	for i := range refs {
		refs[i] = "get secrets " + refs[i]
	}
	if d := cmp.Diff(want, refs, cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })); d != "" {
		t.Errorf("secrets on record (-read +recorded):\n%s", d)
	}
	for key, value := range v.Annotations {
		if value == "theirs" && !slices.Contains([]string{wellknown.AnnDeletionSecretName, wellknown.AnnModifySecretName}, key) {
			t.Errorf("annotation %s of the claim is on the volume", key)
		}
	}
}

// TestASecretThatMayNotBeRead: with rights in some namespaces only, a class that names a secret of another one is told at its
// claims, and the driver is not asked without it. Catches a room that takes a refusal for a secret that does not exist.
func TestASecretThatMayNotBeRead(t *testing.T) {
	h := kit.New(t)
	h.Driver.Capabilities = can()
	h.Put(kit.Class(kit.ClassName, func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{wellknown.ParamSecretName: "ours", wellknown.ParamSecretNamespace: "storage"}
	}), kit.Claim("data"))
	h.API.Fail("get", "secrets", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "ours", errors.New("no right there")), 99)
	start(h)
	h.Horizon = 10 * time.Minute
	h.Settle()
	if calls := requests(h); len(calls) > 0 {
		t.Errorf("the driver was asked without its secret: %v", calls)
	}
	if told := strings.Join(h.Log.Lines(), "\n"); !strings.Contains(told, failed+`error getting secret ours in namespace storage: secrets "ours" is forbidden: no right there`) {
		t.Errorf("told: %s", told)
	}
}

// TestAVolumeThatMayNotBeWritten: the driver has made it by then, and its claim says who lacks which right, and what gives it. Catches
// an event with the words of the API server alone.
func TestAVolumeThatMayNotBeWritten(t *testing.T) {
	h := kit.New(t)
	h.Driver.Capabilities = can()
	h.Put(kit.Class(kit.ClassName), kit.Claim("data"))
	h.API.Fail("create", "persistentvolumes", apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumes"}, "v",
		errors.New(`User "x:y" cannot create resource`)), 99)
	start(h)
	h.Horizon = time.Minute
	h.Settle()
	const helps = `User "x:y" cannot create resource; bind a role such as that in deploy/provisioner/rbac.yaml to x:y, and it goes on by itself`
	if told := strings.Join(h.Log.Lines(), "\n"); !strings.Contains(told, failed+"saving PersistentVolume ") || !strings.Contains(told, helps) {
		t.Errorf("told: %s", told)
	}
}

// TestAnnotatingHastens: what the event advises is true. A secret that appears is noticed at the next try, which is far off by
// then, and any annotation that is new brings it forward. Catches a room that has not heard of the change, and advice that
// promises more than the room does.
func TestAnnotatingHastens(t *testing.T) {
	h := kit.New(t)
	h.Driver.Capabilities = can()
	h.Put(kit.Class(kit.ClassName, func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{wellknown.ParamSecretName: "late", wellknown.ParamSecretNamespace: kit.Namespace}
	}), kit.Claim("data"))
	start(h)
	h.Horizon = 20 * time.Minute // tries come every five minutes by now
	h.Settle()
	h.Put(kit.Secret("late", nil))
	h.Horizon = time.Second
	h.Settle()
	if calls := requests(h); len(calls) > 0 {
		t.Fatal("the secret was noticed by itself: then the advice is wrong")
	}
	kit.Edit(h.API, dataKey, func(c *corev1.PersistentVolumeClaim) { kube.SetAnnotation(c, "csi-tandem.io/retry", "1") })
	h.Settle()
	if calls := requests(h); len(calls) != 1 {
		t.Errorf("%d calls after the claim was annotated\n%s", len(calls), h.Trace())
	}
}
