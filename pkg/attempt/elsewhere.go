// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// Disclaim takes what is filed of a claim off the record of another process, which may not run, so that it does not go on with that when it is
// back. What it made for the claim has to be known by a PersistentVolume. The name is that of Options.
func Disclaim(ctx context.Context, client kube.Client, namespace, name string, uid types.UID) error {
	for i := range shards {
		if err := disclaimIn(ctx, client, shardKey(namespace, name, i), uid); err != nil {
			return err
		}
	}
	return nil
}

func disclaimIn(ctx context.Context, client kube.Client, key kube.Key, uid types.UID) error {
	var err error
	for range beginTries {
		var object *corev1.ConfigMap
		if object, err = kube.Fetch[*corev1.ConfigMap](ctx, client, key); apierrors.IsNotFound(err) {
			return nil
		}
		changes := map[string]*string{}
		if err == nil {
			for entry := range object.Data {
				if isEntry(entry) && claimOf(types.UID(entry)) == uid {
					changes[entry] = nil
				}
			}
			if len(changes) == 0 {
				return nil
			}
			_, err = kube.PatchData(ctx, client, object, changes)
		}
		if err == nil || !isOutrun(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("taking what is over off the record %s of the process that made the volume: %w", key.Name, err)
	}
	return nil
}

func shardKey(namespace, name string, nth int) kube.Key {
	return kube.Key{Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, nth)}
}
