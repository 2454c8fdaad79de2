// SPDX-License-Identifier: Apache-2.0

package rights

// namespace is where deploy/ installs.
const namespace = "csi-tandem"

var (
	// Pair is the account of deploy/pair and deploy/node, to which the components add.
	Pair       = Account{namespace, "csi-tandem"}
	controller = Account{namespace, "snapshot-controller"}
)

// component is rights that are added to those of the pair.
func component(dir, name, says string, sets ...Set) Manifest {
	return Manifest{Path: "deploy/components/" + dir + "/rbac.yaml", Says: says, Name: "csi-tandem-" + name, Account: Pair, Sets: sets}
}

// Manifests are all files that are written from the table.
var Manifests = []Manifest{
	{
		Path: "deploy/provisioner/rbac.yaml", Name: "csi-tandem-provisioner", Account: Account{namespace, "csi-provisioner"}, Makes: true,
		Says: "The rights of the provisioner with every feature that a flag or a driver can switch on. deploy/pair begins with less.\n" +
			"Existing objects are patched, so \"update\" stands nowhere. At start the process asks the API server which of these it\nhas, and names each one that is missing.",
		Sets: []Set{Complete(Provisioner)},
	},
	{
		Path: "deploy/snapshotter/rbac.yaml", Name: "csi-tandem-snapshotter", Account: Account{namespace, "csi-snapshotter"}, Makes: true,
		Says: "The rights of the snapshotter with every feature, for both of its halves: content (VolumeSnapshotContent and the driver) and\n" +
			"binding (VolumeSnapshot and its content). deploy/pair begins with less. Existing objects are patched, so \"update\" stands\n" +
			"nowhere. At start the process asks the API server which of these it has, and names each one that is missing.",
		Sets: []Set{Complete(Snapshotter)},
	},
	{
		Path: "deploy/pair/rbac.yaml", Name: "csi-tandem", Account: Pair, Makes: true,
		Says: "The rights of the pair for a driver without topology, attachments, secrets and VolumeAttributesClasses, and with none of the\n" +
			"features that a flag switches on. The components add the rest.",
		Sets: []Set{Of(Provisioner, Volumes, Leader, Record, Restore), Of(Snapshotter, Contents, Leader, Living, Groups)},
	},
	{
		Path: "deploy/pair/binding.yaml", Name: "csi-tandem-binding", Account: Pair,
		Says: "The rights to bind the snapshots of the pair's driver. The component bind-all leaves that to a program of its own.",
		Sets: []Set{Of(Snapshotter, Binding, StandBack)},
	},
	{
		Path: "deploy/node/rbac.yaml", Name: "csi-tandem", Account: Pair, Makes: true,
		Says: "The rights of the sidecars on each node. Nothing is elected there. The components add the rest.",
		Sets: []Set{Of(Provisioner, Volumes, Record, Restore, OneNode), Of(Snapshotter, Contents, OneNode)},
	},
	{
		Path: "deploy/node/binder-rbac.yaml", Name: "csi-tandem-snapshot-controller", Account: controller, Makes: true,
		Says: "The rights of the one that binds the snapshots of all nodes.",
		Sets: []Set{Of(Snapshotter, Binding, Distributed, Leader, Groups)},
	},
	component("topology", "topology", "For drivers with VOLUME_ACCESSIBILITY_CONSTRAINTS.", Of(Provisioner, Topology)),
	component("attach", "attach", "For drivers with PUBLISH_UNPUBLISH_VOLUME.", Of(Provisioner, Attach)),
	component("modify", "modify", "For drivers with MODIFY_VOLUME.", Of(Provisioner, Modify)),
	component("secrets", "secrets", "For classes that name secrets. These may be in any namespace.", Of(Provisioner, Secrets), Of(Snapshotter, Secrets)),
	component("cross-namespace", "cross-namespace", "For the gate CrossNamespaceVolumeDataSource.", Of(Provisioner, Foreign)),
	component("namespace-labels", "namespace-labels", "For --create-parameter-namespace-labels and -annotations.", Of(Provisioner, Namespaces)),
	component("capacity", "capacity", "For --enable-capacity, with objects that the Deployment owns.", Of(Provisioner, Topology, Capacity, ReplicaSetsOwn)),
	component("capacity-node", "capacity", "For --enable-capacity on each node, with objects that the DaemonSet owns.", Of(Provisioner, Capacity)),
	component("explain", "explain", "For provisioner explain and snapshotter explain in the pods, which else take the rights of who runs them.", Of(Provisioner, Explain), Of(Snapshotter, Explain)),
	{
		Path: "deploy/components/bind-all/rbac.yaml", Name: "csi-tandem-snapshot-controller", Account: controller, Makes: true,
		Says: "The rights of the one that binds the snapshots of all drivers.",
		Sets: []Set{Of(Snapshotter, Binding, Leader, Groups)},
	},
	{
		Path: "examples/hostpath/rbac.yaml", Name: "csi-hostpath", Account: Account{"csi-hostpath", "csi-hostpath"}, Makes: true,
		Says: "The rights of both sidecars in the one pod.",
		Sets: []Set{Of(Provisioner, Volumes, Record, Topology, Restore, Capacity), Of(Snapshotter, Contents, Living, Binding, StandBack, Groups)},
	},
	{
		Path: "examples/vendor/switch/rbac-driver.yaml", Name: "disk-csi-tandem", Account: Account{"disk-csi", "disk-csi-controller"},
		Says: "What our sidecars need beyond what those of the vendor's manifests have: existing objects are patched. It is all that they\nneed, so that it can stay when the old rights go.",
		Sets: []Set{Of(Provisioner, Volumes, Leader, Record, Secrets, Topology, Attach, Restore, Modify), Of(Snapshotter, Contents, Leader, Secrets, Living, Groups)},
	},
	{
		Path: "examples/vendor/switch/rbac-controller.yaml", Name: "snapshot-controller-tandem", Account: Account{"kube-system", "snapshot-controller"},
		Says: "The same for the program that binds snapshots.",
		Sets: []Set{Of(Snapshotter, Binding, Leader, Groups)},
	},
}
