// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/controller/storagecapacity"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

// Capabilities that decide which rooms there are.
const (
	canSnapshot = csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT
	canAttach   = csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME
	canModify   = csi.ControllerServiceCapability_RPC_MODIFY_VOLUME
)

// kindClaim is what most rooms here work on.
const kindClaim = "PersistentVolumeClaim"

// rooms are the options of those who live here.
type rooms struct {
	claim    *claim.Options
	source   *source.Options
	capacity *storagecapacity.Options
}

func newRooms() *rooms {
	return &rooms{claim: claim.NewOptions(), source: source.NewOptions(), capacity: storagecapacity.NewOptions()}
}

func (r *rooms) validate() error {
	return errors.Join(r.claim.Validate(), r.source.Validate(), r.capacity.Validate())
}

// setup wires the rooms. Those of claims and of sources hear of each other through functions.
func (r *rooms) setup(ctx context.Context, env *sidecar.Env) ([]sidecar.Runnable, error) {
	claimOptions := *r.claim
	claimOptions.Topology, claimOptions.AttributesClass = env.Gates.Enabled(gateTopology), env.Gates.Enabled(gateAttributes)
	claimOptions.CrossNamespace = env.Gates.Enabled(gateCrossNamespace)
	claimOptions.AttributesClass = claimOptions.AttributesClass && r.mayModify(ctx, env)
	if claimOptions.Metadata.NeedsNamespace() {
		env.Require(namespaceRight())
	}
	local := narrow(&claimOptions, env)
	claims, volumes, classes := env.Claims(), env.Volumes(), env.StorageClasses()
	deps := claim.Deps{
		Client: env.Client, Driver: env.Calls, DriverName: env.DriverName, Identity: env.Identity, Capabilities: env.Capabilities,
		Recorder: env.Recorder, Clock: env.Clock, Claims: claims.Store, Volumes: volumes.Store, Classes: classes.Store,
		Workers: int(env.Options.WorkerThreads), RetryStart: env.Options.RetryIntervalStart, RetryMax: env.Options.RetryIntervalMax,
		Registry: env.Registry,
	}
	deps.Local = local
	if env.Node != "" {
		env.Require(countRight())
		deps.Surveyor, deps.CountNodes = env.Driver, claim.CountNodes(env.Client)
	}
	sources, protecting := r.setupSources(env, local)
	deps.SourceFreed = sources.Freed
	capacities, publishing, err := r.setupCapacity(ctx, env, env.Node)
	if err != nil {
		return nil, err
	}
	deps.Provisioned, deps.Failed = capacities.Provisioned, capacities.Failed
	needs := sidecar.Caches(claims, volumes, classes)
	if claimOptions.Topology && env.Capabilities.HasTopology() {
		deps.Topology = env.Topology()
		needs = append(needs, env.TopologyCaches()...)
	}
	watched := claim.Watched{Claims: claims, Volumes: volumes, Classes: classes}
	if env.Capabilities.Has(canSnapshot) {
		watched.Snapshots = env.Snapshots()
		env.Require(restoreRights()...)
	}
	if claimOptions.CrossNamespace {
		// Not needed: only claims with a foreign source wait where the cluster does not have the kind.
		watched.Grants = env.Grants()
		deps.Grants = watched.Grants
		sources.WatchGrants(watched.Grants)
	}
	deps.Record = recording(claimOptions, env, env.Node)
	room := claim.New(claimOptions, deps)
	room.Watch(watched)
	sources.IsInUse, sources.GrantsOf = room.IsInUse, room.GrantsOf // each knows the other, and one has to be made first
	runnables := []sidecar.Runnable{{Name: claim.QueueName, Needs: needs, Run: room.Run, Kind: kindClaim, Status: room.Status}, r.setupVolumes(env, capacities, room)}
	return slices.Concat(runnables, afterBegin(room, protecting), publishing), nil
}

// mayModify tells whether VolumeAttributesClasses count. A driver that changes no volumes says so at each claim that names one, for
// which nothing has to be asked.
func (r *rooms) mayModify(ctx context.Context, env *sidecar.Env) bool {
	if !env.Capabilities.Has(canModify) {
		return true
	}
	env.Require(attributesRight())
	return env.Gates.IsGiven(gateAttributes) || claim.FetchAttributesServed(ctx, env.Client)
}

// setupVolumes wires what deletes volumes. The room of claims ends what was begun for the claim of one, and hears
// where there is more room than before.
func (r *rooms) setupVolumes(env *sidecar.Env, capacities *storagecapacity.Controller, claimRoom *claim.Controller) sidecar.Runnable {
	volumes, classes, claims := env.Volumes(), env.StorageClasses(), env.Claims()
	needs := sidecar.Caches(volumes, classes, claims)
	deps := volume.Deps{
		Client: env.Client, Driver: env.Calls, DriverName: env.DriverName, Capabilities: env.Capabilities,
		Recorder: env.Recorder, Clock: env.Clock, Volumes: volumes.Store, Classes: classes.Store, Claims: claims.Store,
		Workers: int(env.Options.WorkerThreads), RetryStart: env.Options.RetryIntervalStart, RetryMax: env.Options.RetryIntervalMax,
		Registry: env.Registry, Settle: claimRoom.Settle, Local: claimRoom.Local, Patience: r.claim.Racing.Max,
		Deleted: func(v *corev1.PersistentVolume) {
			capacities.Deleted(v)
			claimRoom.Freed()
		},
	}
	if !env.Capabilities.Has(canAttach) {
		room := volume.New(deps)
		room.Watch(volumes, nil)
		return sidecar.Runnable{Name: volume.QueueName, Needs: needs, Run: room.Run, Kind: "PersistentVolume", Status: room.Status}
	}
	attachments := env.VolumeAttachments()
	deps.Attachments = attachments.Store
	room := volume.New(deps)
	room.Watch(volumes, attachments)
	return sidecar.Runnable{Name: volume.QueueName, Needs: append(needs, attachments), Run: room.Run, Kind: "PersistentVolume", Status: room.Status}
}

// setupSources builds what lifts protection from sources. Snapshots are watched where the driver can
// restore them; where they do not exist, or may not be watched, that part waits by itself.
func (r *rooms) setupSources(env *sidecar.Env, local claim.Local) (*source.Controller, []sidecar.Runnable) {
	claims := env.Claims()
	deps := source.Deps{
		Client: env.Client, DriverName: env.DriverName, Clock: env.Clock, Claims: claims.Store, Workers: int(env.Options.WorkerThreads),
		Local: local, RetryStart: env.Options.RetryIntervalStart, RetryMax: env.Options.RetryIntervalMax,
	}
	if !env.Capabilities.Has(canSnapshot) {
		room := source.New(*r.source, deps)
		room.Watch(claims, nil)
		return room, []sidecar.Runnable{{Name: source.CloneQueueName, Needs: sidecar.Caches(claims), Run: room.RunClaims, Kind: kindClaim, Status: room.ClaimStatus}}
	}
	snapshots := env.Snapshots()
	deps.Snapshots = snapshots.Store
	room := source.New(*r.source, deps)
	room.Watch(claims, snapshots)
	return room, []sidecar.Runnable{
		{Name: source.CloneQueueName, Needs: sidecar.Caches(claims), Run: room.RunClaims, Kind: kindClaim, Status: room.ClaimStatus},
		{Name: source.SnapshotQueueName, Needs: sidecar.Caches(claims, snapshots), Optional: true, Run: room.RunSnapshots, Kind: "VolumeSnapshot", Status: room.SnapshotStatus},
	}
}
