// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// awaitObjects waits until there are so many CSIStorageCapacity objects, and says when that was.
func (r *capacityRun) awaitObjects(ctx context.Context, enough func(int) bool) (time.Time, error) {
	count := 0
	err := r.until(ctx, 100*time.Millisecond, func() (bool, error) {
		// Of all objects but the first only the number is asked for.
		list, err := r.stage.Kube.StorageV1().CSIStorageCapacities(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return false, err
		}
		count = len(list.Items) + int(ptr.Deref(list.RemainingItemCount, 0))
		return enough(count), nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("waiting for capacity objects, of which there are %d: %w", count, err)
	}
	return time.Now(), nil
}

// awaitCalls waits until the driver was asked so often.
func (r *capacityRun) awaitCalls(ctx context.Context, enough int) error {
	calls := 0
	err := r.until(ctx, 100*time.Millisecond, func() (bool, error) {
		calls, _ = r.driver.count("GetCapacity")
		return calls >= enough, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for calls of GetCapacity, of which there are %d: %w", calls, err)
	}
	return nil
}

// awaitEach waits until the driver was asked about so many segments and classes.
func (r *capacityRun) awaitEach(ctx context.Context, enough int) error {
	places := 0
	err := r.until(ctx, 100*time.Millisecond, func() (bool, error) {
		places = r.driver.subjects("GetCapacity")
		return places >= enough, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until GetCapacity was called for %d places, of which %d were asked about: %w", enough, places, err)
	}
	return nil
}

// until looks again and again, as long as there is patience and the programs live.
func (b *bench) until(ctx context.Context, interval time.Duration, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, b.o.patience)
	defer cancel()
	for {
		done, err := holds()
		if err == nil {
			err = b.watchOver()
		}
		if err != nil || done {
			return err
		}
		if !rest(ctx, interval) {
			return context.Cause(ctx)
		}
	}
}
