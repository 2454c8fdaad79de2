// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

const cloneFinalizer = "provisioner.storage.kubernetes.io/cloning-protection"

func elsewhere(namespace, kind, name string, group *string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: group, Kind: kind, Name: name, Namespace: ptr.To(namespace)}
	}
}

// grant lets the claims of the test's namespace have what another namespace has of a kind.
func (w *world) grant(namespace, group, kind string) []byte {
	w.Helper()
	manifest := stage.Grant(w.ns, group, kind)
	w.mustNot(w.stage.Cluster.ApplyBytes(w.ctx, manifest, namespace))
	return manifest
}

// otherNamespace is one with a bound claim "source", which goes with the test.
func (w *world) otherNamespace(class string) string {
	w.Helper()
	other := w.ns + "-other"
	w.must(w.kube.CoreV1().Namespaces().Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}, metav1.CreateOptions{}))
	w.mustNot(w.stage.Cluster.AwaitNamespace(w.ctx, other))
	w.Cleanup(func() {
		if err := w.kube.CoreV1().Namespaces().Delete(w.ctx, other, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			w.Error(err)
		}
	})
	home := w.ns
	w.ns = other
	w.claim("source", class)
	w.bound("source")
	w.ns = home
	return other
}

// TestForeignSources (T50, T51, T52, PW-19, PW-22, PW-25): data of another namespace with the consent of its owner, in a cluster that
// learns what a grant is only while the sidecar runs. Nothing is restarted. Catches one that waits for the kind before it
// does anything, one that reads grants only at its start, and one that protects sources of the claim's own namespace only.
func TestForeignSources(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, provisioner: []string{"--feature-gates=CrossNamespaceVolumeDataSource=true", "--retry-interval-start=200ms"}})
	class := w.class("class")
	other := w.otherNamespace(class)
	text := "accessing " + other + "/source of PersistentVolumeClaim dataSource from " + w.ns + "/clone isn't allowed"
	w.claim("clone", class, elsewhere(other, "PersistentVolumeClaim", "source", nil))
	w.told("clone", "Warning ProvisioningFailed", text, "ReferenceGrants cannot be read: ", "need the ReferenceGrant CRD (gateway.networking.k8s.io/v1beta1)")

	w.mustNot(w.stage.AddGrants(w.ctx))
	w.await("grants can be written", func() (bool, string) {
		err := w.stage.Cluster.ApplyBytes(w.ctx, []byte(`{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, metadata: {name: empty}, spec: {from: [], to: []}}`), other)
		if err != nil {
			return unreadable(err)
		}
		return true, ""
	})
	rule := w.rule(w.script.Hang(w.ctx, control.On("CreateVolume"), 0))
	given := w.grant(other, "", "PersistentVolumeClaim")
	w.await("the source is held while it is read", func() (bool, string) {
		source, err := w.kube.CoreV1().PersistentVolumeClaims(other).Get(w.ctx, "source", metav1.GetOptions{})
		if err != nil {
			return unreadable(err)
		}
		return len(source.Finalizers) > 1 && source.Finalizers[len(source.Finalizers)-1] == cloneFinalizer, text + " " + source.String()
	})
	w.awaitCalls("CreateVolume", 2)
	w.mustNot(w.kube.CoreV1().PersistentVolumeClaims(other).Delete(w.ctx, "source", metav1.DeleteOptions{}))
	// Withdrawn while the call is open: what was begun is finished, since nobody knows what became of it.
	w.mustNot(w.stage.Cluster.DeleteBytes(w.ctx, given, other))
	w.release(rule)
	w.bound("clone")
	w.gone("the source", func() error {
		_, err := w.kube.CoreV1().PersistentVolumeClaims(other).Get(w.ctx, "source", metav1.GetOptions{})
		return err
	})
	w.claim("late", class, elsewhere(other, "PersistentVolumeClaim", "source", nil))
	w.told("late", "Warning ProvisioningFailed", "isn't allowed")
	if calls := w.calls("CreateVolume"); request[asked](w, calls[len(calls)-1]).Name != request[asked](w, calls[1]).Name {
		t.Errorf("the driver was asked after the grant was withdrawn: %s", calls[len(calls)-1].Request)
	}
	w.repeats = 3
}

// TestForeignSourcesAreOff (T52): by default a source in another namespace is refused, whatever its owner says.
func TestForeignSourcesAreOff(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true})
	class := w.class("class")
	w.claim("clone", class, elsewhere("default", "PersistentVolumeClaim", "source", nil))
	w.told("clone", "Warning ProvisioningFailed", "dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled")
}
