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

// Rights beyond those of the caches, which declare themselves.
const snapshotGroup = "snapshot.storage.k8s.io"

// components grant what deploy/pair begins without, by what they are rights on.
func components() map[string]string {
	return map[string]string{"secrets": "deploy/components/secrets"}
}

// rights are those of both halves.
func rights() []sidecar.Right {
	return []sidecar.Right{{Resource: "events", Verbs: "create", Why: "telling users what happens"}}
}

func contentRights() []sidecar.Right {
	return []sidecar.Right{
		{Resource: "secrets", Verbs: "get", Why: "the secrets that classes name"},
		{Group: snapshotGroup, Resource: "volumesnapshotcontents", Verbs: "get patch", Why: "taking and deleting snapshots"},
		{Group: snapshotGroup, Resource: "volumesnapshotcontents/status", Verbs: "patch", Why: "telling when a snapshot is ready"},
	}
}

func bindingRights() []sidecar.Right {
	const why = "binding snapshots"
	return []sidecar.Right{
		{Group: snapshotGroup, Resource: "volumesnapshots", Verbs: "get patch", Why: why},
		{Group: snapshotGroup, Resource: "volumesnapshots/status", Verbs: "patch", Why: why},
		{Group: snapshotGroup, Resource: "volumesnapshotcontents", Verbs: "get create patch delete", Why: why},
		{Resource: "persistentvolumeclaims", Verbs: "patch", Why: why},
		{Resource: "persistentvolumes", Verbs: "get", Why: why},
	}
}

// seeSnapshots is the right to keep a cache of the snapshots.
func seeSnapshots() sidecar.Right {
	return sidecar.Right{Group: snapshotGroup, Resource: "volumesnapshots", Verbs: "list watch", Why: "seeing whether a snapshot is there"}
}
