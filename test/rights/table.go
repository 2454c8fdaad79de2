// SPDX-License-Identifier: Apache-2.0

package rights

// The features. Each is switched on by a flag, or by what the driver can do.
const (
	// Volumes and Contents are what the two programs are for.
	Volumes  Feature = "volumes"
	Contents Feature = "contents"
	// Leader is --leader-election, Record is --attempt-record.
	Leader Feature = "leader election"
	Record Feature = "the record of open attempts"
	// Secrets are named by classes.
	Secrets Feature = "secrets"
	// Topology, Restore, Attach and Modify are capabilities of the driver: VOLUME_ACCESSIBILITY_CONSTRAINTS, CREATE_DELETE_SNAPSHOT,
	// PUBLISH_UNPUBLISH_VOLUME and MODIFY_VOLUME.
	Topology Feature = "topology"
	Restore  Feature = "restore"
	Attach   Feature = "attachments"
	Modify   Feature = "VolumeAttributesClasses"
	// Foreign is the gate CrossNamespaceVolumeDataSource.
	Foreign Feature = "sources in other namespaces"
	// Namespaces are --create-parameter-namespace-labels and -annotations.
	Namespaces Feature = "labels of namespaces"
	// Capacity is --enable-capacity. It takes Topology too, unless with --node-deployment. The owners stand for
	// --capacity-ownerref-level=2.
	Capacity       Feature = "capacity"
	ReplicaSetsOwn Feature = "capacity owned by a Deployment"
	DaemonSetsOwn  Feature = "capacity owned by what controls a DaemonSet"
	// OneNode is --node-deployment.
	OneNode Feature = "one node"
	// Living is that the half beside the driver looks whether a snapshot lives before its data is deleted, where it does not bind.
	Living Feature = "living snapshots"
	// Binding is --bind-snapshots other than none, StandBack its value auto, Distributed --enable-distributed-snapshotting.
	Binding     Feature = "binding"
	StandBack   Feature = "standing back"
	Distributed Feature = "distributed snapshots"
	// Groups is that whoever asks for a group snapshot is told that there are none.
	Groups Feature = "word of group snapshots"
	// Explain is the command explain, run in the pod.
	Explain Feature = "explain"
)

const (
	storage      = "storage.k8s.io"
	snapshots    = "snapshot.storage.k8s.io"
	groups       = "groupsnapshot.storage.k8s.io"
	coordination = "coordination.k8s.io"
	gateway      = "gateway.networking.k8s.io"
)

// table is what each feature does with the API. "list" stands beside each "watch": a cache is filled by pages of a list first.
var table = []Row{
	{Provisioner, Volumes, Everywhere, "", "persistentvolumes", "", "get list watch create patch delete", "Volumes are made, protected, and deleted; get is the live read before a deletion."},
	{Provisioner, Volumes, Everywhere, "", "persistentvolumeclaims", "", "get list watch patch", "The selected node is given back, a clone's source is protected, and a claim read live before data is deleted."},
	{Provisioner, Volumes, Everywhere, storage, "storageclasses", "", "list watch", "Parameters of volumes."},
	{Provisioner, Volumes, Everywhere, "", "events", "", "create", "What happens is told at the claim and at the volume."},
	{Provisioner, Leader, Home, coordination, "leases", "", "get list watch create patch", "Leader election. Standbys watch the lease, so that taking over does not wait for a timer."},
	{Provisioner, Record, Home, "", "configmaps", "", "get create patch", "What was asked of the driver and has no certain outcome yet, so that the next process finishes it."},
	{Provisioner, Secrets, Everywhere, "", "secrets", "", "get", "Secrets that classes name: read live at the moment of a call, never listed, never kept."},
	{Provisioner, Topology, Everywhere, storage, "csinodes", "", "list watch", "Which topology keys the driver has on which node."},
	{Provisioner, Topology, Everywhere, "", "nodes", "", "list watch", "Which values nodes have for them."},
	{Provisioner, OneNode, Everywhere, storage, "csinodes", "", "list", "How many nodes there are: one object is read, and the number of the rest; and whether the node is there that it was given."},
	{Provisioner, Attach, Everywhere, storage, "volumeattachments", "", "list watch", "A volume that is still attached is not deleted."},
	{Provisioner, Modify, Everywhere, storage, "volumeattributesclasses", "", "get", "Mutable parameters, read live."},
	{Provisioner, Restore, Everywhere, snapshots, "volumesnapshots", "", "get list watch patch", "A snapshot is protected while a volume is made of it."},
	{Provisioner, Restore, Everywhere, snapshots, "volumesnapshotcontents", "", "get", "The handle to restore from."},
	{Provisioner, Foreign, Everywhere, gateway, "referencegrants", "", "list watch", "Who may restore and clone out of another namespace."},
	{Provisioner, Namespaces, Everywhere, "", "namespaces", "", "get", "Labels and annotations that the driver is told, read live once for each volume."},
	{Provisioner, Capacity, Home, storage, "csistoragecapacities", "", "list watch create patch delete", "The objects by which the scheduler knows where there is room."},
	{Provisioner, Capacity, Home, "", "pods", "", "get", "Where the walk to the owner of those objects begins."},
	{Provisioner, ReplicaSetsOwn, Home, "apps", "replicasets", "", "get", "The walk from the pod to its Deployment."},
	{Provisioner, DaemonSetsOwn, Home, "apps", "daemonsets", "", "get", "The walk from the pod to what controls its DaemonSet."},
	{Provisioner, Explain, Everywhere, storage, "storageclasses", "", "get", "explain reads single objects."},
	{Provisioner, Explain, Everywhere, storage, "csidrivers", "", "get", "explain tells whether the scheduler asks where there is room."},
	{Provisioner, Explain, Everywhere, "", "nodes", "", "get list", "explain tells whether the node that is meant is still there, and which ones a class allows or a volume can be reached from."},
	{Provisioner, Explain, Everywhere, storage, "csinodes", "", "list", "explain tells on which nodes the driver is, and with which topology keys."},
	{Provisioner, Explain, Everywhere, storage, "csistoragecapacities", "", "list", "explain shows where the scheduler sees room."},
	{Provisioner, Explain, Everywhere, coordination, "leases", "", "get list", "explain tells which process works for the driver, and whether the kubelet of a node is silent."},
	{Provisioner, Explain, Everywhere, "", "events", "", "list", "explain shows what was told last."},
	{Provisioner, Explain, Everywhere, "", "pods", "", "list", "explain names the pods that use a claim, and what they wait for."},
	{Provisioner, Explain, Everywhere, storage, "volumeattachments", "", "list", "explain tells where a volume is attached."},

	{Snapshotter, Contents, Everywhere, snapshots, "volumesnapshotcontents", "", "get list watch patch", "The content is the order to the driver; get is the live read before a deletion."},
	{Snapshotter, Contents, Everywhere, snapshots, "volumesnapshotcontents/status", "", "patch", "What the driver answered."},
	{Snapshotter, Contents, Everywhere, snapshots, "volumesnapshotclasses", "", "list watch", "Parameters of snapshots."},
	{Snapshotter, Contents, Everywhere, "", "events", "", "create", "What happens is told at the content."},
	{Snapshotter, Leader, Home, coordination, "leases", "", "get list watch create patch", "Leader election, with one lease for each half. Standbys watch it."},
	{Snapshotter, Secrets, Everywhere, "", "secrets", "", "get", "Secrets that classes name: read live at the moment of a call, never listed, never kept."},
	{Snapshotter, Living, Everywhere, snapshots, "volumesnapshots", "", "get list watch", "The data of a snapshot that lives is never deleted, whatever any mark says."},
	{Snapshotter, OneNode, Everywhere, snapshots, "volumesnapshots", "", "get list", "The data of a snapshot that lives is never deleted, whatever any mark says. All are listed where the reference of a content leads to none."},
	{Snapshotter, Binding, Everywhere, snapshots, "volumesnapshots", "", "get list watch patch", "Snapshots are protected, and read live before anything is deleted."},
	{Snapshotter, Binding, Everywhere, snapshots, "volumesnapshots/status", "", "patch", "Bound and ready."},
	{Snapshotter, Binding, Everywhere, snapshots, "volumesnapshotcontents", "", "get list watch create patch delete", "The content of a snapshot is made, and deleted with it."},
	{Snapshotter, Binding, Everywhere, snapshots, "volumesnapshotclasses", "", "list watch", "The class, and the default class."},
	{Snapshotter, Binding, Everywhere, "", "persistentvolumes", "", "get", "From the claim to the volume that is to be cut."},
	{Snapshotter, Binding, Everywhere, "", "persistentvolumeclaims", "", "list watch patch", "The claim is protected until it is cut."},
	{Snapshotter, Binding, Everywhere, "", "events", "", "create", "What happens is told at the snapshot."},
	{Snapshotter, StandBack, Everywhere, coordination, "leases", "snapshot-controller-leader", "get", "The sign of a snapshot-controller at work, before which --bind-snapshots=auto stands back."},
	{Snapshotter, Distributed, Everywhere, "", "nodes", "", "list watch", "From which nodes the volume can be reached."},
	{Snapshotter, Groups, Everywhere, groups, "volumegroupsnapshots", "", "list", "Who asks for a group snapshot is told that none are taken."},
	{Snapshotter, Groups, Everywhere, groups, "volumegroupsnapshotclasses", "", "list", "Which driver is asked for a group."},
	{Snapshotter, Explain, Everywhere, snapshots, "volumesnapshotclasses", "", "get", "explain reads single objects."},
	{Snapshotter, Explain, Everywhere, "", "persistentvolumeclaims", "", "get", "explain reads single objects."},
	{Snapshotter, Explain, Everywhere, "", "events", "", "list", "explain shows what was told last."},
	{Snapshotter, Explain, Everywhere, coordination, "leases", "", "list", "explain tells which process works for the driver, and whether the kubelet of a node is silent."},
}
