// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/controller/content"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volumesnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

// isLocal tells that the process serves the node that it is on.
func (r *rooms) isLocal() bool { return r.content.NodeDeployment }

// binds tells that the process may bind. Beside the driver of each node it does so only when it is told to: the
// caches that binding takes hold the cluster.
func (r *rooms) binds() bool {
	switch r.binding.Bind {
	case volumesnapshot.None:
		return false
	case volumesnapshot.Auto:
		return !r.isLocal()
	default:
		return true
	}
}

// mustElect: of the processes on the nodes one binds, whatever --leader-election says.
func (r *rooms) mustElect() bool { return r.isLocal() && r.binds() }

func (r *rooms) checkLocal() error {
	switch {
	case !r.isLocal():
		return nil
	case r.binds() && !r.binding.Distributed:
		return errors.New("--node-deployment with --bind-snapshots=" + string(r.binding.Bind) + ": add --enable-distributed-snapshotting, without which no content says which node it is for")
	case !r.binds() && r.common.Election.Enabled:
		return errors.New("--node-deployment with --leader-election: each node's snapshotter works by itself; leave --leader-election out, or let one of them bind as well with --bind-snapshots=own")
	}
	return nil
}

// narrow lets the process see the contents of its node only.
func (r *rooms) narrow(ctx context.Context, env *sidecar.Env) {
	if env.Node == "" {
		return
	}
	env.Narrow.Contents = content.Selector(env.Node)
	if !r.binds() {
		klog.FromContext(ctx).Info("Binding is left to another process, which needs --enable-distributed-snapshotting", "bind-snapshots", r.binding.Bind)
	}
}

// binderLead is by which rule the half that binds leads.
func (r *rooms) binderLead() sidecar.Lead {
	if r.isLocal() {
		return sidecar.LeadAlways
	}
	return sidecar.LeadIfAsked
}

// contentLead is by which rule the half beside the driver leads.
func (r *rooms) contentLead() sidecar.Lead {
	if r.isLocal() {
		return sidecar.LeadNever
	}
	return sidecar.LeadIfAsked
}
