// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// askable are the kinds that can be asked about, and how.
var askable = []struct {
	kind, ask  string
	namespaced bool
	exists     func(context.Context, kube.Client, kube.Key) bool
}{
	{kindClaim, provisioner + " explain pvc/", true, exists[*corev1.PersistentVolumeClaim]},
	{kindVolume, provisioner + " explain pv/", false, exists[*corev1.PersistentVolume]},
	{wellknown.KindVolumeSnapshot, snapshotter + " explain vs/", true, exists[*snapv1.VolumeSnapshot]},
	{kindContent, snapshotter + " explain vsc/", false, exists[*kube.Content]},
}

func exists[T kube.Object](ctx context.Context, c kube.Client, key kube.Key) bool {
	_, err := kube.Fetch[T](ctx, c, key)
	return err == nil
}

// missing says more of an object that is not there: its namespace may not be either, and a name alone may be that of
// an object of another kind.
func (l *look) missing(ctx context.Context, kind string, key kube.Key, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	if key.Namespace != "" {
		if _, gone := kube.Fetch[*corev1.Namespace](ctx, l.client, kube.Key{Name: key.Namespace}); apierrors.IsNotFound(gone) {
			return fmt.Errorf("namespace %s does not exist: say another one with -n; without -n it is the one of the kubeconfig's context", key.Namespace)
		}
	}
	for _, other := range askable {
		at, in := kube.Key{Name: key.Name}, ""
		if other.namespaced {
			at.Namespace, in = key.Namespace, " -n "+key.Namespace
		}
		isAskable := other.kind != kind && (key.Namespace != "" || !other.namespaced)
		if isAskable && other.exists(ctx, l.client, at) {
			return fmt.Errorf("%w; there is a %s of that name: %s%s%s", err, other.kind, other.ask, key.Name, in)
		}
	}
	return err
}
