// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// FetchSecret reads the data of a secret for one driver call. It is always live and never kept, so that
// a rotated secret is used at once and none lies in memory longer than the call; no key means no data.
// The error says which secret, and keeps the API error for errors.As.
func FetchSecret(ctx context.Context, c Client, key Key) (map[string]string, error) {
	if key.Name == "" {
		return nil, nil
	}
	// At high verbosity client-go logs the bodies of answers through the logger of the context.
	secret, err := Fetch[*corev1.Secret](klog.NewContext(ctx, logr.Discard()), c, key)
	if err != nil {
		return nil, unread(key, err)
	}
	data := make(map[string]string, len(secret.Data))
	for k, v := range secret.Data {
		data[k] = string(v)
	}
	return data, nil
}

// FetchSecretIsThere asks whether a secret exists, without having its data sent. The error is the one that
// FetchSecret would give.
func FetchSecretIsThere(ctx context.Context, c Client, key Key) error {
	if key.Name == "" {
		return nil
	}
	if err := c.Fetch(ctx, ResourceOf[*corev1.Secret](), key, &metav1.PartialObjectMetadata{}); err != nil {
		return unread(key, err)
	}
	return nil
}

func unread(key Key, err error) error {
	return fmt.Errorf("error getting secret %s in namespace %s: %w", key.Name, key.Namespace, err)
}
