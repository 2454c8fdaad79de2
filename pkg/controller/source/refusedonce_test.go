// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// An admission webhook, or a right that comes late, refuses the patch once, while the source is being deleted. Catches one that is not tried again.
func TestRefusedOnce(t *testing.T) {
	h := kit.New(t)
	claim := kit.With(kit.Claim("source", kit.BoundTo("pv")), kit.Finalizers(wellknown.FinalizerCloneSource), kit.Deleted)
	h.Put(claim)
	h.API.Fail("patch", "persistentvolumeclaims", apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "source", errors.New("admission webhook denied the request")), 1)
	start(h, source.NewOptions(), idle)
	h.Horizon = 24 * time.Hour
	h.Settle()
	if c, ok := kit.Read[*corev1.PersistentVolumeClaim](h.API, sourceKey); ok {
		t.Errorf("Terminating for ever under %v\n%s\n%v", c.Finalizers, h.Trace(), h.Log.Lines())
	}
}

// The same for a snapshot whose content may not be read for a moment.
func TestContentNotReadOnce(t *testing.T) {
	h := kit.New(t)
	snap := kit.With(kit.Snapshot("snap", "source"), kit.Finalizers(wellknown.FinalizerSnapshotAsSource), kit.Deleted)
	snap.Status = nil
	h.Put(snap)
	kit.Edit(h.API, snapKey, kit.BoundContent("content"))
	h.API.Fail("get", "volumesnapshotcontents", apierrors.NewForbidden(schema.GroupResource{Resource: "volumesnapshotcontents"}, "content", errors.New("RBAC: not yet")), 1)
	start(h, source.NewOptions(), idle)
	h.Horizon = 24 * time.Hour
	h.Settle()
	if _, ok := kit.Read[*snapv1.VolumeSnapshot](h.API, snapKey); ok {
		t.Errorf("Terminating for ever\n%s\n%v", h.Trace(), h.Log.Lines())
	}
}
