// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

// recording says where open attempts are written down, nil when they are not.
func recording(options claim.Options, env *sidecar.Env, node string) *claim.Recording {
	if !options.Record {
		return nil
	}
	env.Require(sidecar.Right{
		Resource: "configmaps", Verbs: "get create patch", Namespace: env.LeaseNamespace,
		Why: "the record of open attempts, without which a volume whose making was interrupted can be left at the driver",
	})
	return &claim.Recording{
		Namespace: env.LeaseNamespace, Name: claim.RecordName(env.DriverName, node),
		Holder: env.Holder, Linger: claim.RecordLinger, Tenure: env.Tenure(), Disown: env.Disown, Own: env.Own,
	}
}

// afterBegin lets work wait until it is known what an earlier process has left open: a source that such an
// attempt reads from must not be released before.
func afterBegin(room *claim.Controller, runnables []sidecar.Runnable) []sidecar.Runnable {
	waiting := make([]sidecar.Runnable, 0, len(runnables))
	for _, r := range runnables {
		run := r.Run
		r.Run = func(ctx context.Context) error {
			if room.AwaitBegun(ctx) != nil {
				return nil // told to end
			}
			return run(ctx)
		}
		waiting = append(waiting, r)
	}
	return waiting
}
