// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

// isLocal tells that the process serves the node that it is on.
func (r *rooms) isLocal() bool { return r.claim.NodeDeployment }

// narrow lets the caches of a process that serves one node hold no more than that takes, and says what it serves.
func narrow(options *claim.Options, env *sidecar.Env) claim.Local {
	place := env.Place
	if !env.Capabilities.HasTopology() {
		place = nil
	}
	local := options.Serving(env.Node, place)
	if env.Node == "" {
		return local
	}
	kept := options.Kept(env.DriverName, local)
	env.Narrow = sidecar.Narrow{
		Claims: kept.Claim, Volumes: kept.Volume, Attachments: kept.Attachment, Snapshots: kept.Snapshot, TrimVolume: kept.TrimVolume,
	}
	return local
}
