// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

func options() *sidecar.Options {
	o := sidecar.NewOptions()
	o.WorkerThreads, o.EnvironmentFirst = 100, true
	return o
}

// Names of the feature gates that rooms ask for.
const (
	gateTopology       = "Topology"
	gateCrossNamespace = "CrossNamespaceVolumeDataSource"
	gateAttributes     = "VolumeAttributesClass"
)

func gates() []sidecar.Gate {
	return []sidecar.Gate{
		{Name: gateTopology, Stage: sidecar.GA, Default: true},
		{Name: gateCrossNamespace, Stage: sidecar.Alpha},
		{Name: gateAttributes, Stage: sidecar.GA, Default: true},
		{Name: "ReleaseLeaderElectionOnExit", Stage: sidecar.Alpha, Default: true, Fixed: "since the lease is always released"},
		{Name: "HonorPVReclaimPolicy", Retired: true},
		{Name: "CSINodeExpandSecret", Retired: true},
	}
}

func retired() []sidecar.Flag {
	return []sidecar.Flag{
		{Name: "connection-timeout", Default: "", Usage: "retired: the driver is awaited for as long as it takes"},
		{Name: "provisioner", Default: "", Usage: "retired: the driver says its name itself"},
		{Name: "enable-leader-election", Default: false, Usage: "retired: use --leader-election"},
		{Name: "leader-election-type", Default: "", Usage: "retired: it is always a Lease"},
	}
}

// components grant what deploy/pair begins without, by what they are rights on.
func components() map[string]string {
	const folder, capacity = "deploy/components/", "deploy/components/capacity or deploy/components/capacity-node"
	return map[string]string{
		"csinodes": folder + "topology", "nodes": folder + "topology",
		"secrets": folder + "secrets", "volumeattachments": folder + "attach", "volumeattributesclasses": folder + "modify",
		"referencegrants": folder + "cross-namespace", "namespaces": folder + "namespace-labels",
		"csistoragecapacities": capacity, "pods": capacity, "replicasets": folder + "capacity",
	}
}

// rights are what the rooms do with the API beyond their caches, whatever the driver can do.
func rights() []sidecar.Right {
	return []sidecar.Right{
		{Resource: "persistentvolumes", Verbs: "get create patch delete", Why: "making and deleting volumes"},
		{Resource: "persistentvolumeclaims", Verbs: "get patch", Why: "giving a selected node back, and protecting the source of a clone"},
		{Resource: "events", Verbs: "create", Why: "telling users what happens"},
		{Resource: "secrets", Verbs: "get", Why: "the secrets that classes name"},
	}
}

// countRight is for a process of one node, which has no cache of them.
func countRight() sidecar.Right {
	return sidecar.Right{Group: "storage.k8s.io", Resource: "csinodes", Verbs: "list", Why: "counting the nodes that may take a claim"}
}

// attributesRight is for drivers that change volumes.
func attributesRight() sidecar.Right {
	return sidecar.Right{Group: "storage.k8s.io", Resource: "volumeattributesclasses", Verbs: "get", Why: "claims that name a VolumeAttributesClass"}
}

// restoreRights are for drivers with snapshots.
func restoreRights() []sidecar.Right {
	const group, why = "snapshot.storage.k8s.io", "restoring from a snapshot"
	return []sidecar.Right{
		{Group: group, Resource: "volumesnapshots", Verbs: "get patch", Why: why},
		{Group: group, Resource: "volumesnapshotcontents", Verbs: "get", Why: why},
	}
}

// namespaceRight is needed only by those who ask for it.
func namespaceRight() sidecar.Right {
	return sidecar.Right{Resource: "namespaces", Verbs: "get", Why: "--create-parameter-namespace-labels and -annotations"}
}
