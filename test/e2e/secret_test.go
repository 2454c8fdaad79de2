// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const canary = "canary-5f2c-\"quoted\""

// TestSecrets: a driver that insists on a secret gets it with every call that changes something, and nobody else sees it.
func TestSecrets(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{driver: []string{"--require-secrets=token=" + canary}, provisioner: []string{"-v=5"}, snapshotter: []string{"-v=5"}})
	class := w.class("class", parameters(map[string]string{
		"csi.storage.k8s.io/provisioner-secret-name":      "${pvc.name}-secret",
		"csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
	}))
	claim := w.claim("data", class)
	// The text is that of the API server behind our words (T34).
	w.told("data", "Warning ProvisioningFailed", "error getting secret data-secret in namespace "+w.ns)
	if calls := w.calls("CreateVolume"); len(calls) > 0 {
		t.Error("CreateVolume was called without the secret")
	}
	// Whoever explains asks a real API server for no more than whether the secret is there.
	a := asker{w, shared.stage.Cluster.Kubeconfig()}
	a.says(w.provisioner, []string{"data", "-n", w.ns, "--csi-address="}, `secrets "data-secret" not found`,
		"in its parameters csi.storage.k8s.io/provisioner-secret-name and csi.storage.k8s.io/provisioner-secret-namespace: create that secret", "[Reject]")
	w.secret("data-secret", map[string]string{"token": canary})
	pv := w.bound("data")
	if pv.Annotations["volume.kubernetes.io/provisioner-deletion-secret-name"] != "data-secret" ||
		pv.Annotations["volume.kubernetes.io/provisioner-deletion-secret-namespace"] != w.ns {
		t.Errorf("the volume remembers %v", pv.Annotations)
	}
	snapshotClass := w.snapshotClass("delete", func(c *snapv1.VolumeSnapshotClass) {
		c.Parameters = map[string]string{
			"csi.storage.k8s.io/snapshotter-secret-name":      "data-secret",
			"csi.storage.k8s.io/snapshotter-secret-namespace": "${volumesnapshot.namespace}",
		}
	})
	w.snapshot("snap", "data", snapshotClass)
	_, content := w.ready("snap")
	if content.Annotations["snapshot.storage.kubernetes.io/deletion-secret-name"] != "data-secret" ||
		content.Annotations["snapshot.storage.kubernetes.io/deletion-secret-namespace"] != w.ns {
		t.Errorf("the content remembers %v", content.Annotations)
	}
	a.says(w.snapshotter, []string{"vsc/" + content.Name, "--csi-address="}, "VolumeSnapshot "+w.ns+"/snap", "settled")
	a.says(w.provisioner, []string{"pv/" + pv.Name, "--csi-address="}, "claim "+w.ns+"/data", "[Ignore]")
	w.deleteSnapshot("snap")
	w.snapshotGone("snap")
	w.deleteClaim("data")
	w.volumeGone("pvc-" + string(claim.UID))
	w.checkCanary()
}

// checkCanary looks for the secret wherever it could have been written down: raw, in base64, and escaped.
func (w *world) checkCanary() {
	w.Helper()
	forms := []string{canary, base64.StdEncoding.EncodeToString([]byte(canary)), strings.Trim(text(canary), `"`)}
	written := map[string]string{}
	for _, p := range w.cast.Processes() {
		log, err := os.ReadFile(p.Log)
		w.mustNot(err)
		written["the log of the "+p.Name] = string(log)
	}
	if len(written["the log of the provisioner"]) == 0 || len(written["the log of the snapshotter"]) == 0 {
		w.Error("a sidecar has written no log at all, so that nothing was looked at")
	}
	for _, namespace := range []string{w.ns, metav1.NamespaceDefault} {
		events, err := w.kube.CoreV1().Events(namespace).List(w.ctx, metav1.ListOptions{})
		w.mustNot(err)
		written["the events of "+namespace] = text(events)
	}
	for where, said := range written {
		for _, form := range forms {
			if strings.Contains(said, form) {
				w.Errorf("the secret is in %s", where)
			}
		}
	}
}

// TestBadSecretTemplates: templates that cannot be resolved are told as they are, and the driver is not asked (T32, T33).
func TestBadSecretTemplates(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	const name, namespace = "csi.storage.k8s.io/provisioner-secret-name", "csi.storage.k8s.io/provisioner-secret-namespace"
	rows := []struct {
		name string
		keys map[string]string
		says []string
	}{
		{"half", map[string]string{name: "a"}, []string{"either name and namespace for Provisioner secrets specified, Both must be specified"}},
		{"token", map[string]string{name: "${nonsense}", namespace: "b"}, []string{`error resolving value "${nonsense}": invalid tokens: ["nonsense"]`}},
		{"shape", map[string]string{name: "a", namespace: "Not A Namespace"}, []string{`"Not A Namespace" is not a valid namespace name`}},
		{"reserved", map[string]string{"csi.storage.k8s.io/foo": "bar"}, []string{`found unknown parameter key "csi.storage.k8s.io/foo" with reserved namespace csi.storage.k8s.io/`}},
	}
	for _, row := range rows {
		w.claim(row.name, w.class(row.name, parameters(row.keys)))
	}
	for _, row := range rows {
		w.told(row.name, append([]string{corev1.EventTypeWarning + " ProvisioningFailed"}, row.says...)...)
	}
	if calls := w.calls("CreateVolume"); len(calls) > 0 {
		t.Errorf("the driver was asked all the same: %s", calls[0].Request)
	}
	w.claim("data", w.class("good"))
	w.bound("data")
	bad := w.snapshotClass("bad", func(c *snapv1.VolumeSnapshotClass) {
		c.Parameters = map[string]string{"csi.storage.k8s.io/snapshotter-secret-name": "a"}
	})
	w.snapshot("snap", "data", bad)
	w.failed("snap", "Failed to create snapshot content with error", "either name and namespace for Snapshotter secrets specified, Both must be specified")
}
