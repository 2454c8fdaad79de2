// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// grantKind is the kind as the gateway project defines it, as far as it is looked at here.
const grantKind = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: referencegrants.gateway.networking.k8s.io
  annotations: {api-approved.kubernetes.io: https://github.com/kubernetes-sigs/gateway-api/pull/2997}
spec:
  group: gateway.networking.k8s.io
  names: {kind: ReferenceGrant, listKind: ReferenceGrantList, plural: referencegrants, singular: referencegrant}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// TestRestoreElsewhere: a snapshot is restored by a pod of another namespace, when the owner has agreed and not before.
func TestRestoreElsewhere(t *testing.T) {
	t.Parallel()
	w := begin(t)
	home, guest := w.ns, w.ns+"-guest"
	w.namespace(guest)
	w.claim("source", immediate)
	w.pod("writer", "source")
	w.says(w.runs("writer"), "echo lent > /data/file && sync && echo ok", "ok")
	w.snapshot("snap", "source")
	w.ready("snap")
	w.explain(shared.snapshotter, "snap", "ready")

	w.ns = guest
	w.claim("restored", immediate, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: ptr.To(snapGroup), Kind: "VolumeSnapshot", Name: "snap", Namespace: ptr.To(home)}
	})
	w.pod("reader", "restored")
	w.explain(shared.provisioner, "restored", "isn't allowed")

	cluster := shared.stage.Cluster
	w.must(cluster.ApplyBytes(w.ctx, []byte(grantKind), ""))
	grant := []byte(`apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: grant}
spec:
  from: [{group: "", kind: PersistentVolumeClaim, namespace: ` + guest + `}]
  to: [{group: ` + snapGroup + `, kind: VolumeSnapshot}]
`)
	w.await("the grant can be written", func() (bool, string) {
		if err := cluster.ApplyBytes(w.ctx, grant, home); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
	w.says(w.runs("reader"), "cat /data/file", "lent")
	w.ns = home
}

// TestSnapshotThatTakesItsTime: the restore waits for the snapshot, its pod for the restore, and both explain it.
func TestSnapshotThatTakesItsTime(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.claim("source", immediate)
	w.pod("writer", "source")
	w.says(w.runs("writer"), "echo old > /data/file && sync && echo ok", "ok")
	rule, err := shared.cast.Control.ReadyAfter(w.ctx, "", time.Hour)
	w.must(err)
	w.snapshot("snap", "source")
	w.explain(shared.snapshotter, "snap", "Waits")
	w.claim("restored", immediate, fromSnapshot("snap"))
	w.explain(shared.provisioner, "restored", "snapshotter explain -n "+w.ns+" snap")
	w.pod("reader", "restored")
	w.must(shared.cast.Control.Release(w.ctx, rule))
	w.ready("snap")
	w.says(w.runs("reader"), "cat /data/file", "old")
}
