// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/csi-tandem/csi-tandem/pkg/controller/content"
	"github.com/csi-tandem/csi-tandem/pkg/controller/groupsnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volumesnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

const (
	// name is also what the API server notes as the author of our writes.
	name = "snapshotter"
	// binderComponent is the source of the events about binding.
	binderComponent = "snapshot-controller"
	// binderHome is where the program that binds for all drivers mostly has its lease.
	binderHome = "kube-system"
)

// rooms are the options of those who live here.
type rooms struct {
	content *content.Options
	binding *volumesnapshot.Options
	common  *sidecar.Options
}

func newRooms() *rooms { return &rooms{content.NewOptions(), volumesnapshot.NewOptions(), options()} }

func (r *rooms) validate() error {
	return errors.Join(r.content.Validate(), r.binding.Validate(), r.checkLocal())
}

// bindsAll tells that there is work without a driver.
func (r *rooms) bindsAll() bool { return r.binding.Bind == volumesnapshot.All }

// withoutDriver says what is left to do without one: to bind for all of them, or nothing.
func (r *rooms) withoutDriver() error {
	if r.bindsAll() || r.binding.Validate() != nil {
		return r.binding.Validate()
	}
	return fmt.Errorf("--csi-address must not be empty with --bind-snapshots=%s: give the driver's socket, such as /run/csi/socket, or use --bind-snapshots=all, which needs no driver", r.binding.Bind)
}

func (r *rooms) setup(ctx context.Context, env *sidecar.Env) ([]sidecar.Runnable, error) {
	var runnables []sidecar.Runnable
	r.narrow(ctx, env)
	if env.Driver != nil {
		runnables = append(runnables, r.setupContents(ctx, env))
	}
	if r.binds() {
		runnables = append(runnables, r.setupBinding(env)...)
	}
	return append(runnables, r.setupGroups(env)...), nil
}

// setupGroups builds what tells that there are no group snapshots. On every node the same would be said: there, the one that binds says it.
func (r *rooms) setupGroups(env *sidecar.Env) []sidecar.Runnable {
	if env.Node != "" {
		return nil
	}
	deps := groupsnapshot.Deps{Client: env.Client, Recorder: env.Recorder, Clock: env.Clock, DriverName: env.DriverName}
	lease := ""
	if r.bindsAll() {
		deps.DriverName, deps.Recorder, lease = "", env.RecorderAs(binderComponent), sidecar.BinderLease
	}
	room := groupsnapshot.New(deps)
	return []sidecar.Runnable{{Name: groupsnapshot.Name, Lease: lease, Lead: r.contentLead(), Needs: sidecar.Caches(), Run: room.Run}}
}

// setupContents builds the half beside the driver. It sees the snapshots where it may; else the marks of
// the other half have to do.
func (r *rooms) setupContents(ctx context.Context, env *sidecar.Env) sidecar.Runnable {
	env.Require(contentRights()...)
	contents, classes := env.LocalContents(), env.SnapshotClasses()
	needs := sidecar.Caches(contents, classes)
	deps := content.Deps{
		Client: env.Client, Driver: env.Calls, DriverName: env.DriverName, Capabilities: env.Capabilities,
		Recorder: env.Recorder, Clock: env.Clock, Contents: contents.Store, Classes: classes.Store,
		Workers: int(env.Options.WorkerThreads), RetryStart: env.Options.RetryIntervalStart, RetryMax: env.Options.RetryIntervalMax,
		Registry: env.Registry,
	}
	// A process that serves one node reads the snapshots of its contents live: a cache would hold those of all.
	if env.Node != "" || !env.AllowsOrAwaits(ctx, seeSnapshots()) {
		room := content.New(*r.content, deps)
		room.Watch(contents, classes, nil)
		return sidecar.Runnable{Name: content.QueueName, Lead: r.contentLead(), Needs: needs, Run: room.Run, Kind: "VolumeSnapshotContent", Status: room.Status}
	}
	snapshots := env.Snapshots()
	deps.Snapshots = snapshots.Store
	room := content.New(*r.content, deps)
	room.Watch(contents, classes, snapshots)
	return sidecar.Runnable{Name: content.QueueName, Needs: append(needs, snapshots), Run: room.Run, Kind: "VolumeSnapshotContent", Status: room.Status}
}

// setupBinding builds the half that binds, and what decides whether it takes part. Unless somebody has
// asked for it by name, a lack of rights leaves it to others and is no hindrance to the rest.
func (r *rooms) setupBinding(env *sidecar.Env) []sidecar.Runnable {
	env.Require(bindingRights()...)
	recorder := env.RecorderAs(binderComponent)
	stance := volumesnapshot.NewStance(r.binding.Bind, volumesnapshot.StanceDeps{
		Client: env.Client, Clock: env.Clock, Recorder: recorder, Holder: env.Holder,
		Namespaces: []string{env.LeaseNamespace, binderHome}, Manager: name, Registry: env.Registry,
		MayBind: func(ctx context.Context) bool { return mayBind(ctx, env) },
	})
	watches := volumesnapshot.Informers{
		Snapshots: env.Snapshots(), Contents: env.Contents(), Classes: env.SnapshotClasses(), Claims: env.Claims(),
	}
	deps := volumesnapshot.Deps{
		Client: env.Client, Recorder: recorder, Clock: env.Clock, DriverName: env.DriverName,
		NamePrefix: r.content.NamePrefix, NameLength: r.content.NameLength, Node: env.Node,
		Snapshots: watches.Snapshots.Store, Contents: watches.Contents.Store, Classes: watches.Classes.Store, Claims: watches.Claims.Store,
		Stance: stance, Workers: int(env.Options.WorkerThreads), Registry: env.Registry,
		RetryStart: env.Options.RetryIntervalStart, RetryMax: env.Options.RetryIntervalMax,
	}
	needs := sidecar.Caches(watches.Snapshots, watches.Contents, watches.Classes, watches.Claims)
	if r.binding.Distributed {
		nodes := env.Nodes()
		deps.NodeOf, needs = volumesnapshot.NodeOf(nodes.Store), append(needs, nodes)
	}
	room := volumesnapshot.New(*r.binding, deps)
	room.Watch(watches)
	lease := sidecar.OwnBinderLease(env.DriverName)
	if r.bindsAll() {
		lease = sidecar.BinderLease
	}
	return []sidecar.Runnable{
		{Name: "stance", Lease: lease, Lead: r.binderLead(), Needs: sidecar.Caches(), Run: stance.Run},
		{
			Name: volumesnapshot.QueueName, Lease: lease, Lead: r.binderLead(), Needs: needs,
			Optional: r.binding.Bind == volumesnapshot.Auto, Run: room.Run, Kind: "VolumeSnapshot", Status: room.Status,
		},
	}
}

// mayBind tells whether this process has every right that binding takes.
func mayBind(ctx context.Context, env *sidecar.Env) bool {
	for _, right := range append(bindingRights(), seeSnapshots()) {
		if !env.Allows(ctx, right) {
			return false
		}
	}
	return true
}
