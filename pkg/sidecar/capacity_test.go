// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// counting is a limiter that counts who waits for it.
type counting struct {
	flowcontrol.RateLimiter
	waits int
}

// Wait implements flowcontrol.RateLimiter.
func (c *counting) Wait(context.Context) error { c.waits++; return nil }

// PW-27: a limit that is written into the shared configuration, or a limiter that is shared, would slow down
// the elector and the claims.
func TestClientWithLimitsOfItsOwn(t *testing.T) {
	asked := &counting{RateLimiter: flowcontrol.NewFakeAlwaysRateLimiter()}
	shared := &rest.Config{Host: "http://127.0.0.1:1", QPS: 7, Burst: 3, RateLimiter: asked}
	limiter := shared.RateLimiter
	env := &Env{config: shared}
	for _, qps := range []float64{-1, 0, 1} {
		client, err := env.NewClient(qps, 5)
		if err != nil || client == nil || client == env.Client {
			t.Fatalf("%v: got %v, %v", qps, client, err)
		}
		if _, err := kube.Fetch[*corev1.PersistentVolume](t.Context(), client, kube.Key{Name: "v"}); err == nil || asked.waits != 0 {
			t.Errorf("%v: the limiter of others was asked %d times, and the error is %v", qps, asked.waits, err)
		}
	}
	if shared.QPS != 7 || shared.Burst != 3 || shared.RateLimiter != limiter {
		t.Errorf("the shared configuration is now %v", shared)
	}
	if client, err := (&Env{}).NewClient(1, 5); client != nil || err != nil {
		t.Errorf("without a configuration: %v, %v", client, err)
	}
}

func TestFatal(t *testing.T) {
	cause := errors.New("no owner")
	err := Fatal(cause)
	var e *ending
	if !errors.Is(err, cause) || !errors.As(err, &e) || e.code != exitFatal {
		t.Errorf("T94: got %v", err)
	}
}
