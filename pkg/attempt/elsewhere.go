// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// Disclaim takes what is filed of a claim off the record of another process, which may not run, so that it does not go on with that when it is
// back. What it made for the claim has to be known by a PersistentVolume. The name is that of Options.
func Disclaim(ctx context.Context, client kube.Client, namespace, name string, uid types.UID) error {
	for i := range shards {
		if there, err := disclaimIn(ctx, client, shardKey(namespace, name, i), uid); err != nil || !there {
			return err // they are made in order
		}
	}
	return nil
}

// disclaimIn is Disclaim for one object. Who may not read it goes on: without the right nothing was written there by any other process either, as all
// of them have the same rights.
func disclaimIn(ctx context.Context, client kube.Client, key kube.Key, uid types.UID) (there bool, err error) {
	for range beginTries {
		var object *corev1.ConfigMap
		switch object, err = kube.Fetch[*corev1.ConfigMap](ctx, client, key); {
		case apierrors.IsNotFound(err):
			return false, nil
		case apierrors.IsForbidden(err):
			klog.FromContext(ctx).V(2).Info("what another process has on record may not be read", "record", key.Name, "err", err)
			return false, nil
		}
		if err == nil {
			changes := withoutClaim(object, uid)
			if len(changes) == 0 {
				return true, nil
			}
			_, err = kube.PatchData(ctx, client, object, changes)
		}
		if err == nil || !isOutrun(err) {
			break
		}
	}
	if apierrors.IsForbidden(err) {
		return true, refuseSettling()
	}
	if err != nil {
		return true, fmt.Errorf("taking what is over off the record %s of the process that made the volume: %w", key.Name, err)
	}
	return true, nil
}

func shardKey(namespace, name string, nth int) kube.Key {
	return kube.Key{Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, nth)}
}

// withoutClaim are the changes that take all entries of a claim off.
func withoutClaim(object *corev1.ConfigMap, uid types.UID) map[string]*string {
	changes := map[string]*string{}
	for entry := range object.Data {
		if isEntry(entry) && claimOf(types.UID(entry)) == uid {
			changes[entry] = nil
		}
	}
	return changes
}
