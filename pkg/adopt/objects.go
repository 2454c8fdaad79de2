// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"crypto/sha256"
	"fmt"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/params"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// contentName follows from the snapshot at the driver alone, so that the API server itself refuses a second content
// of the same snapshot when two people import it at once.
func contentName(driver, handle string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s", driver, handle))
	return fmt.Sprintf("imported-%x", sum[:16])
}

// buildContent makes the content of a handle. Without a class the order names driver and policy itself.
func buildContent(o Order, class *snapv1.VolumeSnapshotClass) (*kube.Content, error) {
	driver, policy := o.Driver, snapv1.DeletionPolicy(o.Policy)
	if class != nil {
		driver = class.Driver
		if policy == "" {
			policy = class.DeletionPolicy
		}
	}
	content := contentOf(o, driver, o.Handle, policy)
	if o.VolumeMode != "" {
		mode := corev1.PersistentVolumeMode(o.VolumeMode)
		content.Spec.SourceVolumeMode = &mode
	}
	if class == nil {
		return content, nil
	}
	content.Spec.VolumeSnapshotClassName = &class.Name
	// Who deletes the snapshot may need the secret when the class is long gone.
	secret, err := params.ResolveSecret(params.Snapshotter, class.Parameters, params.SnapshotTokens(content.Name, o.Namespace, o.Name))
	if err != nil {
		return nil, fmt.Errorf("the secret of VolumeSnapshotClass %s: %w", class.Name, err)
	}
	if secret != nil {
		kube.SetAnnotation(content, wellknown.AnnSnapshotDeletionSecretName, secret.Name)
		kube.SetAnnotation(content, wellknown.AnnSnapshotDeletionSecretNamespace, secret.Namespace)
	}
	return content, nil
}

// inherited are the annotations that say something of the snapshot at the driver, whoever it belongs to.
var inherited = []string{
	wellknown.AnnSnapshotDeletionSecretName, wellknown.AnnSnapshotDeletionSecretNamespace,
	wellknown.AnnAllowVolumeModeChange, wellknown.AnnSourceTopology,
}

// buildHeir makes the content that takes the place of one whose source is a volume.
func buildHeir(o Order, old *kube.Content) *kube.Content {
	policy := old.Spec.DeletionPolicy
	if o.Policy != "" {
		policy = snapv1.DeletionPolicy(o.Policy)
	}
	content := contentOf(o, old.Spec.Driver, handleOf(old), policy)
	copied := old.DeepCopy()
	content.Spec.VolumeSnapshotClassName, content.Spec.SourceVolumeMode = copied.Spec.VolumeSnapshotClassName, copied.Spec.SourceVolumeMode
	kube.SetAnnotation(content, wellknown.AnnTakenFrom, old.Name)
	for _, key := range inherited {
		if value, ok := old.Annotations[key]; ok {
			kube.SetAnnotation(content, key, value)
		}
	}
	if node, ok := old.Labels[wellknown.LabelManagedBy]; ok {
		content.Labels = map[string]string{wellknown.LabelManagedBy: node}
	}
	return content
}

func contentOf(o Order, driver, handle string, policy snapv1.DeletionPolicy) *kube.Content {
	return &kube.Content{VolumeSnapshotContent: snapv1.VolumeSnapshotContent{
		TypeMeta:   metav1.TypeMeta{APIVersion: snapv1.SchemeGroupVersion.String(), Kind: "VolumeSnapshotContent"},
		ObjectMeta: metav1.ObjectMeta{Name: contentName(driver, handle)},
		Spec: snapv1.VolumeSnapshotContentSpec{
			// Without a UID: whoever makes a snapshot of this name gets it, and that is about to be done.
			VolumeSnapshotRef: corev1.ObjectReference{
				APIVersion: snapv1.SchemeGroupVersion.String(), Kind: wellknown.KindVolumeSnapshot, Namespace: o.Namespace, Name: o.Name,
			},
			DeletionPolicy: policy, Driver: driver, Source: snapv1.VolumeSnapshotContentSource{SnapshotHandle: &handle},
		},
	}}
}

func buildSnapshot(o Order, content string) *snapv1.VolumeSnapshot {
	return &snapv1.VolumeSnapshot{
		TypeMeta:   metav1.TypeMeta{APIVersion: snapv1.SchemeGroupVersion.String(), Kind: wellknown.KindVolumeSnapshot},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Spec:       snapv1.VolumeSnapshotSpec{Source: snapv1.VolumeSnapshotSource{VolumeSnapshotContentName: &content}},
	}
}
