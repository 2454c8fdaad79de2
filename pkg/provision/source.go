// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Source is what a volume is made from.
type Source struct {
	// Kind is VolumeSnapshot or PersistentVolumeClaim, or one that a populator handles.
	Kind            string
	Namespace, Name string
}

// SourceState is what was read about a source. The errors are those of the reads; a nil object without
// error means that its turn did not come.
type SourceState struct {
	Snapshot    *snapv1.VolumeSnapshot
	SnapshotErr error
	Content     *snapv1.VolumeSnapshotContent
	ContentErr  error

	Claim    *corev1.PersistentVolumeClaim
	ClaimErr error
	// Volume is that of the source claim; of a snapshot it is the one that it was taken from, when it is
	// still there and only to know where.
	Volume    *corev1.PersistentVolume
	VolumeErr error

	// Unprotected: the API server does not let us put our finalizer on the source. The restore goes on
	// without, as clusters whose rights are older than the finalizer expect.
	Unprotected bool
}

// SourceOf returns the source of a claim as far as it is written down in order, or nil for an empty
// volume. The source of a claim is its dataSource, else its dataSourceRef, of which only the latter can be
// in another namespace.
func SourceOf(claim *corev1.PersistentVolumeClaim) (source *Source, group string) {
	switch plain, ref := claim.Spec.DataSource, claim.Spec.DataSourceRef; {
	case plain != nil:
		return &Source{Kind: plain.Kind, Namespace: claim.Namespace, Name: plain.Name}, valueOf(plain.APIGroup)
	case ref != nil:
		source = &Source{Kind: ref.Kind, Namespace: claim.Namespace, Name: ref.Name}
		if namespace := valueOf(ref.Namespace); namespace != "" {
			source.Namespace = namespace
		}
		return source, valueOf(ref.APIGroup)
	default:
		return nil, ""
	}
}

// checkReference refuses a source that could not be right whatever is behind its name.
func checkReference(claim *corev1.PersistentVolumeClaim, source *Source, group string) error {
	switch {
	case source == nil:
		return nil
	case source.Name == "":
		return advise(fmt.Errorf("the PVC source not found for PVC %s", claim.Name), newClaim+"gives its dataSource a name")
	case source.Kind == wellknown.KindVolumeSnapshot && group != wellknown.SnapshotGroup:
		return advise(fmt.Errorf("the PVC source does not belong to the right APIGroup. Expected %s, Got %s", wellknown.SnapshotGroup, group),
			newClaim+"has apiGroup %s in its dataSource", wellknown.SnapshotGroup)
	default:
		return nil
	}
}

func valueOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// isKnown tells whether the source is of a kind that the driver itself can read.
func (s *Source) isKnown() bool {
	return s.Kind == wellknown.KindVolumeSnapshot || s.Kind == wellknown.KindPersistentVolumeClaim
}

func (s *Source) isSnapshot() bool { return s.Kind == wellknown.KindVolumeSnapshot }

// CheckSource decides whether the volume may be made from its source, and gives the source as the
// driver knows it. Sizes, classes and owners are compared here so that no claim gets data of a snapshot
// or volume that only carries the right name.
func CheckSource(in ClaimInput, source *Source) (*csi.VolumeContentSource, error) {
	var content *csi.VolumeContentSource
	var err error
	if source.Kind == wellknown.KindVolumeSnapshot {
		content, err = checkSnapshot(in, source)
	} else {
		content, err = checkClone(in, source)
	}
	if err != nil {
		return nil, fmt.Errorf("error getting handle for DataSource Type %s by Name %s: %w", source.Kind, source.Name, err)
	}
	return content, nil
}

// isLeaving tells that a source is being deleted and that a claim comes too late for it. One that is older
// than the deletion may have been interrupted in the middle of its call, which our finalizer waits for;
// refusing it would leave both waiting for each other.
func isLeaving(source metav1.Object, finalizer string, claim *corev1.PersistentVolumeClaim) bool {
	return source.GetDeletionTimestamp() != nil &&
		(!hasFinalizer(source.GetFinalizers(), finalizer) || isLate(claim, source))
}

// isLate tells that a claim was made after the deletion of its source had begun.
func isLate(claim *corev1.PersistentVolumeClaim, source metav1.Object) bool {
	deleted := source.GetDeletionTimestamp()
	return deleted != nil && claim.CreationTimestamp.After(deleted.Time)
}

// pending is the error of a source that is not there yet but on its way.
type pending struct{ error }

func (p pending) Unwrap() error { return p.error }

func isPending(err error) bool {
	var p pending
	return errors.As(err, &p)
}

// isProtected tells whether our finalizer is on the source, or cannot be.
func (s *SourceState) isProtected() bool {
	switch {
	case s.Unprotected:
		return true
	case s.Snapshot != nil:
		return hasFinalizer(s.Snapshot.Finalizers, wellknown.FinalizerSnapshotAsSource)
	case s.Claim != nil:
		return hasFinalizer(s.Claim.Finalizers, wellknown.FinalizerCloneSource)
	default:
		return false
	}
}

// requested is how many bytes a claim asks for, rounded up; ok is false when it does not say.
func requested(claim *corev1.PersistentVolumeClaim) (bytes int64, ok bool) {
	quantity, ok := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return quantity.Value(), ok
}
