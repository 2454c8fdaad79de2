// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/rest"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// Capacities are the CSIStorageCapacity objects of a namespace that have certain labels. They are all of one
// process, so that there is one such cache.
func (e *Env) Capacities(namespace, selector string) *kube.Informer[*storagev1.CSIStorageCapacity] {
	return informerOf(e, kube.InformerOptions[*storagev1.CSIStorageCapacity]{
		Namespace: namespace, LabelSelector: selector, Indexes: kube.CapacityIndexes(),
	})
}

// NewClient makes a client with limits of its own, for work that must not take from others what they are
// allowed; 0 or less sets no limit.
func (e *Env) NewClient(qps float64, burst int) (kube.Client, error) {
	if e.config == nil {
		return e.Client, nil
	}
	own := rest.CopyConfig(e.config)
	own.QPS, own.Burst, own.RateLimiter = float32(qps), burst, nil
	if qps <= 0 {
		own.QPS = -1
	}
	client, err := kube.NewClient(own)
	if err != nil {
		return nil, fmt.Errorf("building a client with limits of its own: %w", err)
	}
	return client, nil
}

// Fatal gives an error the exit code of what the program cannot begin without.
func Fatal(err error) error { return &ending{err, exitFatal} }
