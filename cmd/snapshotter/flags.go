// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

func options() *sidecar.Options {
	o := sidecar.NewOptions()
	o.Timeout = time.Minute
	return o
}

// presets make the program the cluster's snapshot-controller when it is called by that name, so that the
// manifests of one keep working.
func presets() map[string]map[string]string {
	return map[string]map[string]string{
		"snapshot-controller": {"bind-snapshots": "all", "csi-address": ""},
	}
}

func gates() []sidecar.Gate {
	return []sidecar.Gate{
		{Name: "CSIVolumeGroupSnapshot", Stage: sidecar.GA, Missing: "group snapshots"},
		{Name: "ReleaseLeaderElectionOnExit", Stage: sidecar.Alpha, Default: true, Fixed: "since the lease is always released"},
	}
}

func missing() []sidecar.Missing {
	return []sidecar.Missing{
		{
			Feature: "group snapshots",
			Details: []sidecar.Flag{
				{Name: "groupsnapshot-name-prefix", Default: "groupsnapshot", Usage: "prefix of the names of group snapshots"},
				{Name: "groupsnapshot-name-uuid-length", Default: -1, Usage: "digits of the UID in the names of group snapshots"},
			},
		},
		{
			Feature: "distributed snapshotting",
			Switches: []sidecar.Flag{
				{Name: "node-deployment", Default: false, Usage: "run on every node, for the snapshots of that node"},
				{Name: "enable-distributed-snapshotting", Default: false, Usage: "say in each content which node takes the snapshot"},
			},
		},
	}
}

func retired() []sidecar.Flag {
	return []sidecar.Flag{
		{Name: "retry-crd-interval-max", Default: 30 * time.Second, Usage: "retired: the CRDs are awaited for as long as it takes"},
		{Name: "connection-timeout", Default: "", Usage: "retired: the driver is awaited for as long as it takes"},
		{Name: "leader-election-type", Default: "", Usage: "retired: it is always a Lease"},
		{Name: "enable-volume-group-snapshots", Default: false, Usage: "retired: it became a feature gate, and group snapshots are not in this build yet"},
	}
}

// rights are what the rooms do with the API beyond their caches.
func rights() []sidecar.Right {
	const snapshots = "snapshot.storage.k8s.io"
	return []sidecar.Right{
		{Resource: "events", Verbs: "create", Why: "telling users what happens"},
		{Resource: "secrets", Verbs: "get", Why: "the secrets that classes name"},
		{Group: snapshots, Resource: "volumesnapshotcontents", Verbs: "get patch", Why: "taking and deleting snapshots"},
		{Group: snapshots, Resource: "volumesnapshotcontents/status", Verbs: "patch", Why: "telling when a snapshot is ready"},
	}
}
