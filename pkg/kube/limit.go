// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// limiterOf follows client-go: QPS 0 means its default of 5, a negative QPS means no limit.
func limiterOf(config *rest.Config) flowcontrol.RateLimiter {
	qps, burst := config.QPS, config.Burst
	if qps < 0 {
		return flowcontrol.NewFakeAlwaysRateLimiter()
	}
	if qps == 0 {
		qps = rest.DefaultQPS
	}
	if burst == 0 {
		burst = rest.DefaultBurst
	}
	return flowcontrol.NewTokenBucketRateLimiter(qps, burst)
}
