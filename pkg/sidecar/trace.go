// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"crypto/rand"
	"time"

	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/trace"
)

// lastSpans is how long the last spans may take at the end, when the work is over and the lease released.
const lastSpans = 500 * time.Millisecond

// beginTraces traces what is done under the returned context, if the environment asks for that, until it is told to end. What is
// wrong with the environment is told once, and the work goes on without traces.
func (l *life) beginTraces(ctx context.Context) (traced context.Context, end func()) {
	logger := klog.FromContext(ctx)
	tracer, err := trace.New(ctx, trace.Options{
		Program: l.Name, Version: l.Version, Instance: l.holder, Clock: l.clock, Chance: rand.Reader,
		Complain: func(err error) {
			if err != nil {
				logger.Error(err, "Traces get lost; the work goes on")
				return
			}
			logger.Info("Traces are taken again")
		},
	})
	if err != nil {
		logger.Error(err, "Nothing is traced, because the environment says it wrong")
	}
	if tracer == nil {
		return ctx, func() {}
	}
	l.tracer, l.client = tracer, kube.NewTraced(l.client)
	return trace.NewContext(ctx, tracer), func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSpans)
		defer cancel()
		tracer.Shutdown(ending)
	}
}
