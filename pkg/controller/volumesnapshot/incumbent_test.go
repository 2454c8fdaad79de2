// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// incumbent plays the two programs that are in most clusters, effect by effect as the tables of their behaviour say: the
// one that binds for all drivers, and the sidecar beside one. It is written from what can be seen of them, without any of
// our rooms, so that their work can be taken over in the middle, and ours by them.
type incumbent struct{ h *kit.Harness }

var again = reconcile.Result{After: time.Second}

// incumbents are both programs.
func incumbents(h *kit.Harness) {
	i := incumbent{h}
	h.Add(i.binderRoom(), kit.Room{Name: "their sidecar", Reconcile: i.sidecar, Keys: kit.OwnKey[*kube.Content]()})
}

func (i incumbent) binderRoom() kit.Room {
	return kit.Room{Name: "their binder", Reconcile: i.binder, Keys: kit.Feeds(kit.OwnKey[*snapv1.VolumeSnapshot](),
		kit.On(func(change kube.Change[*kube.Content]) []reconcile.Key {
			ref := change.Object().Spec.VolumeSnapshotRef
			return []reconcile.Key{{Namespace: ref.Namespace, Name: ref.Name}}
		}))}
}

func (i incumbent) binder(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	s, err := kube.Fetch[*snapv1.VolumeSnapshot](ctx, i.h.API, kube.Key{Namespace: key.Namespace, Name: key.Name})
	if err != nil {
		return reconcile.Result{}, ignoreGone(err)
	}
	c, err := kube.Fetch[*kube.Content](ctx, i.h.API, kube.Key{Name: contentNameOf(s)})
	if ignoreGone(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil {
		c = nil
	}
	if c != nil && c.Spec.VolumeSnapshotRef.UID == s.UID && c.DeletionTimestamp == nil && !kube.HasFinalizer(c, wellknown.FinalizerContent) {
		if c, err = kube.Patch(ctx, i.h.API, c, func(c *kube.Content) { kube.AddFinalizer(c, wellknown.FinalizerContent) }); err != nil {
			return reconcile.Result{}, err
		}
	}
	if s.DeletionTimestamp != nil {
		return reconcile.Result{}, i.unbind(ctx, s, c)
	}
	return i.bind(ctx, s, c)
}

func contentNameOf(s *snapv1.VolumeSnapshot) string {
	if s.Spec.Source.VolumeSnapshotContentName != nil {
		return *s.Spec.Source.VolumeSnapshotContentName
	}
	return "snapcontent-" + string(s.UID)
}

func ignoreGone(err error) error {
	if kube.IsGone(err) {
		return nil
	}
	return err
}

func (i incumbent) bind(ctx context.Context, s *snapv1.VolumeSnapshot, c *kube.Content) (reconcile.Result, error) {
	named := s.Status != nil && s.Status.BoundVolumeSnapshotContentName != nil
	s, err := kube.Patch(ctx, i.h.API, s, func(s *snapv1.VolumeSnapshot) {
		kube.AddFinalizer(s, wellknown.FinalizerSnapshotSource)
		if named && c != nil && c.Spec.DeletionPolicy == snapv1.VolumeSnapshotContentDelete {
			kube.AddFinalizer(s, wellknown.FinalizerSnapshotBound)
		}
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	if isReady(s) && named {
		return reconcile.Result{}, i.releaseClaim(ctx, s)
	}
	switch {
	case c == nil && s.Spec.Source.PersistentVolumeClaimName == nil:
		return again, nil
	case c == nil:
		if c, err = i.makeContent(ctx, s); err != nil {
			return reconcile.Result{}, err
		}
	case c.Spec.VolumeSnapshotRef.UID == "":
		if c, err = kube.Patch(ctx, i.h.API, c, func(c *kube.Content) { c.Spec.VolumeSnapshotRef.UID = s.UID }); err != nil {
			return reconcile.Result{}, err
		}
	}
	written, err := kube.PatchStatus(ctx, i.h.API, s, func(s *snapv1.VolumeSnapshot) { s.Status = statusOf(s, c) })
	if err == nil && isReady(written) {
		return again, nil
	}
	return reconcile.Result{}, err
}

// makeContent writes neither finalizer nor mark: those come with later writes, the mark from the sidecar.
func (i incumbent) makeContent(ctx context.Context, s *snapv1.VolumeSnapshot) (*kube.Content, error) {
	claim, err := kube.Fetch[*corev1.PersistentVolumeClaim](ctx, i.h.API, kube.Key{Namespace: s.Namespace, Name: *s.Spec.Source.PersistentVolumeClaimName})
	if err == nil {
		_, err = kube.Patch(ctx, i.h.API, claim, func(c *corev1.PersistentVolumeClaim) { kube.AddFinalizer(c, wellknown.FinalizerSourceClaim) })
	}
	if err != nil {
		return nil, err
	}
	class, err := kube.Fetch[*snapv1.VolumeSnapshotClass](ctx, i.h.API, kube.Key{Name: *s.Spec.VolumeSnapshotClassName})
	if err != nil {
		return nil, err
	}
	c := kit.Content(s, kit.VolumeHandle(claim.Spec.VolumeName), func(c *kube.Content) {
		c.ObjectMeta = metav1.ObjectMeta{Name: contentNameOf(s)}
		c.Spec.VolumeSnapshotClassName, c.Spec.DeletionPolicy, c.Spec.Driver = &class.Name, class.DeletionPolicy, class.Driver
	})
	made, err := kube.Create(ctx, i.h.API, c)
	if apierrors.IsAlreadyExists(err) {
		return kube.Fetch[*kube.Content](ctx, i.h.API, kube.KeyOf(c))
	}
	return made, err
}

func statusOf(s *snapv1.VolumeSnapshot, c *kube.Content) *snapv1.VolumeSnapshotStatus {
	status := &snapv1.VolumeSnapshotStatus{ReadyToUse: kit.Ptr(false)}
	if s.Status != nil {
		status = s.Status.DeepCopy()
	}
	status.BoundVolumeSnapshotContentName, status.Error = kit.Ptr(c.Name), nil
	if from := c.Status; from != nil {
		status.ReadyToUse, status.Error = from.ReadyToUse, from.Error
		if status.CreationTime == nil && from.CreationTime != nil {
			status.CreationTime = kit.Ptr(metav1.NewTime(time.Unix(0, *from.CreationTime)))
		}
		if status.RestoreSize == nil && from.RestoreSize != nil {
			status.RestoreSize = resource.NewQuantity(*from.RestoreSize, resource.BinarySI)
		}
	}
	return status
}

func (i incumbent) unbind(ctx context.Context, s *snapv1.VolumeSnapshot, c *kube.Content) error {
	if len(s.Finalizers) == 0 {
		return nil
	}
	if c != nil && c.Spec.VolumeSnapshotRef.UID != s.UID {
		c = nil
	}
	isKept := c != nil && c.Spec.DeletionPolicy == snapv1.VolumeSnapshotContentDelete
	if c != nil {
		marked, err := kube.Patch(ctx, i.h.API, c, func(c *kube.Content) { kube.SetAnnotation(c, wellknown.AnnBeingDeleted, "yes") })
		if err == nil && isKept && marked.DeletionTimestamp == nil {
			err = kube.Delete(ctx, i.h.API, marked)
		}
		if ignoreGone(err) != nil {
			return err
		}
	}
	if err := i.releaseClaim(ctx, s); err != nil {
		return err
	}
	_, err := kube.Patch(ctx, i.h.API, s, func(s *snapv1.VolumeSnapshot) {
		kube.RemoveFinalizer(s, wellknown.FinalizerSnapshotSource)
		if !isKept {
			kube.RemoveFinalizer(s, wellknown.FinalizerSnapshotBound)
		}
	})
	return ignoreGone(err)
}

func (i incumbent) releaseClaim(ctx context.Context, s *snapv1.VolumeSnapshot) error {
	if s.Spec.Source.PersistentVolumeClaimName == nil {
		return nil
	}
	needs := func(other *snapv1.VolumeSnapshot) bool { return other.UID != s.UID && !isReady(other) }
	if slices.ContainsFunc(kit.All[*snapv1.VolumeSnapshot](i.h.API), needs) {
		return nil
	}
	claim, err := kube.Fetch[*corev1.PersistentVolumeClaim](ctx, i.h.API, kube.Key{Namespace: s.Namespace, Name: *s.Spec.Source.PersistentVolumeClaimName})
	if err == nil {
		_, err = kube.Patch(ctx, i.h.API, claim, func(c *corev1.PersistentVolumeClaim) { kube.RemoveFinalizer(c, wellknown.FinalizerSourceClaim) })
	}
	return ignoreGone(err)
}

// sidecar follows the table of the driver's half: the mark before the call, off after a certain answer; deletion only with
// the other half's mark and without its own.
func (i incumbent) sidecar(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	c, err := kube.Fetch[*kube.Content](ctx, i.h.API, kube.Key{Name: key.Name})
	if err != nil {
		return reconcile.Result{}, ignoreGone(err)
	}
	_, creating := c.Annotations[wellknown.AnnBeingCreated]
	_, deleting := c.Annotations[wellknown.AnnBeingDeleted]
	ready := c.Status != nil && c.Status.ReadyToUse != nil && *c.Status.ReadyToUse
	switch {
	case c.DeletionTimestamp != nil && deleting && !creating:
		return reconcile.Result{}, i.erase(ctx, c)
	case ready && creating:
		return reconcile.Result{}, i.unmark(ctx, c)
	case ready:
		return reconcile.Result{}, nil
	case c.Spec.Source.SnapshotHandle != nil:
		return reconcile.Result{}, i.report(ctx, c, &csi.Snapshot{SnapshotId: *c.Spec.Source.SnapshotHandle, ReadyToUse: true, SizeBytes: 1 << 30})
	case c.Spec.VolumeSnapshotRef.UID == "":
		return reconcile.Result{}, nil
	}
	return i.take(ctx, c)
}

func (i incumbent) take(ctx context.Context, c *kube.Content) (reconcile.Result, error) {
	c, err := kube.Patch(ctx, i.h.API, c, func(c *kube.Content) { kube.SetAnnotation(c, wellknown.AnnBeingCreated, "yes") })
	if err != nil {
		return reconcile.Result{}, err
	}
	made, err := i.h.Driver.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{
		SourceVolumeId: *c.Spec.Source.VolumeHandle, Name: "snapshot-" + string(c.Spec.VolumeSnapshotRef.UID), Parameters: map[string]string{},
	})
	if err != nil {
		if failure := fault.Of(err); failure != nil && failure.Class != fault.Uncertain {
			err = errors.Join(err, i.unmark(ctx, c))
		}
		return reconcile.Result{}, err
	}
	if err := i.report(ctx, c, made); err != nil {
		return reconcile.Result{}, err
	}
	if err := i.unmark(ctx, c); err != nil || made.GetReadyToUse() {
		return reconcile.Result{}, err
	}
	return again, nil
}

func (i incumbent) unmark(ctx context.Context, c *kube.Content) error {
	_, err := kube.PatchOwnFields(ctx, i.h.API, c, func(c *kube.Content) { kube.RemoveAnnotation(c, wellknown.AnnBeingCreated) })
	return ignoreGone(err)
}

func (i incumbent) report(ctx context.Context, c *kube.Content, made *csi.Snapshot) error {
	_, err := kube.PatchOwnStatus(ctx, i.h.API, c, func(c *kube.Content) {
		if c.Status == nil {
			c.Status = &snapv1.VolumeSnapshotContentStatus{}
		}
		c.Status.Error = nil
		c.Status.SnapshotHandle, c.Status.ReadyToUse = kit.Ptr(made.GetSnapshotId()), kit.Ptr(made.GetReadyToUse())
		if c.Status.CreationTime == nil {
			c.Status.CreationTime = kit.Ptr(made.GetCreationTime().AsTime().UnixNano())
		}
		if made.GetSizeBytes() > 0 && c.Status.RestoreSize == nil {
			c.Status.RestoreSize = kit.Ptr(made.GetSizeBytes())
		}
	})
	return ignoreGone(err)
}

// erase deletes at the driver, clears the status, so that it is not deleted twice, and lets go.
func (i incumbent) erase(ctx context.Context, c *kube.Content) error {
	if c.Spec.DeletionPolicy == snapv1.VolumeSnapshotContentDelete && c.Status != nil && c.Status.SnapshotHandle != nil && c.GroupHandle() == "" {
		if err := i.h.Driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: *c.Status.SnapshotHandle}); err != nil {
			return fmt.Errorf("deleting: %w", err)
		}
		cleared, err := kube.PatchStatus(ctx, i.h.API, c, func(c *kube.Content) {
			c.Status.SnapshotHandle, c.Status.ReadyToUse, c.Status.CreationTime, c.Status.RestoreSize = nil, nil, nil, nil
		})
		if err != nil {
			return ignoreGone(err)
		}
		c = cleared
	}
	_, err := kube.Patch(ctx, i.h.API, c, func(c *kube.Content) { kube.RemoveFinalizer(c, wellknown.FinalizerContent) })
	return ignoreGone(err)
}
