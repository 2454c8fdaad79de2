// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// lacking asks whether the secret of a call is there. What could not be asked is remembered by the reader; only
// what is certain becomes an error, in the words of the sidecar.
func (l *look) lacking(ctx context.Context, ref *corev1.SecretReference) error {
	if ref == nil {
		return nil
	}
	err := kube.FetchSecretIsThere(ctx, l.client, kube.Key{Namespace: ref.Namespace, Name: ref.Name})
	if !apierrors.IsNotFound(err) {
		return nil
	}
	l.client.apart(func() { // who may not read namespaces is told of the secret only
		if _, gone := kube.Fetch[*corev1.Namespace](ctx, l.client, kube.Key{Name: ref.Namespace}); apierrors.IsNotFound(gone) {
			l.nowhere = ref.Namespace
		}
	})
	return err
}

// adviseNowhere is about the namespace of a secret that is not there either, once.
func (l *look) adviseNowhere() []string {
	namespace := l.nowhere
	if l.nowhere = ""; namespace == "" {
		return nil
	}
	return []string{fmt.Sprintf("namespace %s, in which the secret should be, does not exist: look whether another one is meant, or kubectl create namespace %[1]s first", namespace)}
}

// withSecret is what becomes of a step of a claim whose secret is missing: the sidecar reads it right before the call.
func (l *claimLook) withSecret(ctx context.Context, in provision.ClaimInput, step provision.ClaimStep) provision.ClaimStep {
	create, ok := step.(provision.Create)
	if !ok {
		return step
	}
	if err := l.lacking(ctx, create.Attempt.Secret); err != nil {
		return provision.Reject{Err: provision.LackSecret(in, err)}
	}
	return step
}

// deletionWithSecret is the same for the deletion of a volume.
func (l *claimLook) deletionWithSecret(ctx context.Context, in provision.VolumeInput, step provision.VolumeStep) provision.VolumeStep {
	deletion, ok := step.(provision.Delete)
	if !ok || deletion.MayLackSecret {
		return step
	}
	if err := l.lacking(ctx, deletion.Secret); err != nil {
		return provision.Reject{Err: provision.LackDeletionSecret(in.Volume, err)}
	}
	return step
}

// callWithSecret is the same for the calls about a content. A poll that cannot be made gives way to the create
// that it could be instead, and is no hindrance.
func (l *snapshotLook) callWithSecret(ctx context.Context, in snapshot.ContentInput, step snapshot.ContentStep) snapshot.ContentStep {
	var ref *corev1.SecretReference
	switch s := step.(type) {
	case snapshot.Create:
		if !s.WithoutSecret {
			ref = s.Secret
		}
	case snapshot.Delete:
		if !s.WithoutSecret {
			ref = s.Secret
		}
	case snapshot.Poll:
		if s.Again == nil {
			ref = s.Secret
		}
	}
	if err := l.lacking(ctx, ref); err != nil {
		return snapshot.LackSecret(in, step, err)
	}
	return step
}

// foresee tells of a content that is about to be written that its secret is missing: then the driver is not asked.
func (l *snapshotLook) foresee(ctx context.Context, step snapshot.SnapshotStep) {
	create, ok := step.(snapshot.CreateContent)
	if !ok {
		return
	}
	notes := create.Content.Annotations
	name, namespace := notes[wellknown.AnnSnapshotDeletionSecretName], notes[wellknown.AnnSnapshotDeletionSecretNamespace]
	if name == "" {
		return
	}
	m := &l.report.Machines[len(l.report.Machines)-1]
	if err := l.lacking(ctx, &corev1.SecretReference{Namespace: namespace, Name: name}); err != nil {
		m.Sentence = fmt.Sprintf("Writes VolumeSnapshotContent %s, and then the driver is not asked: %s", create.Content.Name, err)
		m.Advice = append(append(m.Advice, l.adviseNowhere()...), fmt.Sprintf("create secret %s/%s, which VolumeSnapshotClass %s names in its parameters", namespace, name, *create.Content.Spec.VolumeSnapshotClassName))
	}
	m.Doubts = append(m.Doubts, l.client.takeFailed()...)
}
