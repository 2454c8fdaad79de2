// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// A PersistentVolume stays for a moment after its deletion, for the protection that Kubernetes puts on it, and the event of our
// own patch comes before that of the deletion. Catches a room that deletes what it sees then once more: half of all volumes
// cost a refused request more when many are deleted at once.
func TestVolumeIsDeletedOnce(t *testing.T) {
	v := released(func(v *corev1.PersistentVolume) { kube.AddFinalizer(v, "kubernetes.io/pv-protection") })
	h := world(t, v)
	c := startAs(h, kit.DriverName)
	h.Stores.Hold()
	for range 3 {
		if _, err := c.Reconcile(h.Ctx, reconcile.Key{Name: key.Name}); err != nil {
			t.Error(err)
		}
	}
	var asked []string
	for _, r := range h.API.Requests() {
		asked = append(asked, r.Verb)
	}
	// The volume, and the claim, of whose UID its name is not made.
	if diff := cmp.Diff([]string{"get", "get", "patch", "delete"}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	h.Stores.Sync()
	h.Settle()
	if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 1 || len(h.Errors()) > 0 {
		t.Errorf("%d calls, errors %q", len(calls), h.Errors())
	}
	// Somebody who changes it meanwhile makes it a newer one, which is deleted already.
	kit.Edit(h.API, key, func(v *corev1.PersistentVolume) { v.Labels = map[string]string{"a": "b"} })
	h.Settle()
	kit.Edit(h.API, key, func(v *corev1.PersistentVolume) { v.Finalizers = nil })
	h.Settle()
	if _, ok := kit.Read[*corev1.PersistentVolume](h.API, key); ok {
		t.Error("it is still there")
	}
}
