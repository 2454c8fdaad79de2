// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/controller/storagecapacity"
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

const canMeasure = csi.ControllerServiceCapability_RPC_GET_CAPACITY

// setupCapacity builds the room of capacities, if it is asked for and can work. node is the node that this
// process serves, empty for the whole cluster. Without its rights the room is left out, and all are set up
// again when they come.
func (r *rooms) setupCapacity(ctx context.Context, env *sidecar.Env, node string) (*storagecapacity.Controller, []sidecar.Runnable, error) {
	if !r.capacity.Enabled {
		return nil, nil, nil
	}
	namespace, pod := os.Getenv("NAMESPACE"), os.Getenv("POD_NAME")
	if !env.Capabilities.Has(canMeasure) {
		klog.FromContext(ctx).Error(nil, "--enable-capacity: the driver does not have the capability GET_CAPACITY, so that no capacity is published; leave the flag out with this driver", "driver", env.DriverName)
		return nil, nil, nil
	}
	env.Require(ownerRights(namespace, r.capacity.OwnerLevel)...)
	if !env.AllowsOrAwaits(ctx, capacityRight(namespace)) {
		return nil, nil, nil
	}
	client, err := env.NewClient(r.capacity.QPS, r.capacity.Burst)
	if err != nil {
		return nil, nil, err
	}
	classes, objects := env.StorageClasses(), env.Capacities(namespace, storagecapacity.Selector(env.DriverName, node))
	needs := sidecar.Caches(classes, objects)
	deps := storagecapacity.Deps{
		Client: client, Driver: env.Driver, DriverName: env.DriverName, Capabilities: env.Capabilities, Identity: env.Identity, Clock: env.Clock,
		Topology: env.Topology(), Classes: classes.Store, Objects: objects.Store, Namespace: namespace, Pod: pod, Node: node,
		RetryStart: env.Options.RetryIntervalStart, RetryMax: env.Options.RetryIntervalMax, Registry: env.Registry,
	}
	if node == "" {
		needs = append(needs, env.Nodes(), env.CSINodes())
	}
	room := storagecapacity.New(*r.capacity, deps)
	room.Watch(classes, objects)
	run := func(ctx context.Context) error {
		if err := room.Run(ctx); err != nil && ctx.Err() == nil {
			return sidecar.Fatal(err)
		}
		return nil
	}
	return room, []sidecar.Runnable{{Name: storagecapacity.QueueName, Needs: needs, Optional: true, Run: run, Spaces: spacesOf(room), Lack: room.Lack}}, nil
}

// checkVariables refuses what no driver and no cluster has to be asked about.
func (r *rooms) checkVariables() error {
	switch {
	case !r.capacity.Enabled:
		return nil
	case os.Getenv("NAMESPACE") == "":
		return sidecar.Fatal(errors.New("--enable-capacity: set the variable NAMESPACE to the namespace of the pod; CSIStorageCapacity objects are put there"))
	case os.Getenv("POD_NAME") == "" && r.capacity.OwnerLevel >= 0:
		return sidecar.Fatal(errors.New("--enable-capacity: set the variable POD_NAME to the name of the pod, from where the owner of CSIStorageCapacity objects is found, or use --capacity-ownerref-level=-1"))
	}
	return nil
}

// spacesOf shows what the room of capacities knows.
func spacesOf(room *storagecapacity.Controller) func() []sidecar.Space {
	return func() []sidecar.Space {
		var spaces []sidecar.Space
		for _, known := range room.Known() {
			space := sidecar.Space{Segment: known.Segment, Classes: known.Classes, Since: known.Since, Failures: known.Failures}
			if known.Room != nil {
				space.IsKnown, space.Available, space.Maximum = true, known.Room.Available, known.Room.Maximum
			}
			spaces = append(spaces, space)
		}
		return spaces
	}
}

// capacityRight is what the room does with its objects.
func capacityRight(namespace string) sidecar.Right {
	return sidecar.Right{Group: "storage.k8s.io", Resource: "csistoragecapacities", Verbs: "list watch create patch delete", Namespace: namespace, Why: "publishing storage capacity"}
}

// ownerRights are for the walk from the pod to the owner. Which kinds stand on the way is known when it is
// walked; from level 2 on the first one is most often a ReplicaSet.
func ownerRights(namespace string, level int) []sidecar.Right {
	const why = "finding the owner of capacity objects"
	var rights []sidecar.Right
	if level >= 0 {
		rights = append(rights, sidecar.Right{Resource: "pods", Verbs: "get", Namespace: namespace, Why: why})
	}
	if level >= 2 {
		rights = append(rights, sidecar.Right{Group: "apps", Resource: "replicasets", Verbs: "get", Namespace: namespace, Why: why})
	}
	return rights
}
