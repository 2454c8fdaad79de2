// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestWhatWaitsIsNoError: what is told as Normal is no error in the log either, and what is told as Warning is one. Catches a
// room that hands both to the queue alike.
func TestWhatWaitsIsNoError(t *testing.T) {
	c := New(Options{}, Deps{Recorder: kit.NewRecorder(nil), Classes: kube.NewStore[*storagev1.StorageClass](nil)})
	notReady := errors.New("snapshot snap is not Ready")
	for _, waiting := range []bool{true, false} {
		for _, after := range []time.Duration{0, time.Second} {
			_, err := c.reject(t.Context(), &corev1.PersistentVolumeClaim{}, provision.Reject{Err: notReady, Waiting: waiting, After: after})
			if !errors.Is(err, notReady) || fault.IsWaiting(err) != waiting {
				t.Errorf("waiting %v, after %v: %v, waiting %v", waiting, after, err, fault.IsWaiting(err))
			}
			if delay, _ := fault.RetryDelay(err); delay != after {
				t.Errorf("after %v instead of %v", delay, after)
			}
		}
	}
}
