// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// fleet is a world in which each node has a driver process and a pair of sidecars of its own.
type fleet struct {
	*world
	casts map[string]*stage.Cast
	pairs map[string][]*stage.Process
}

// beginFleet starts a driver and a pair on each node, with pools of the given sizes.
func beginFleet(t *testing.T, pools map[string]string) *fleet {
	t.Helper()
	theStage(t)
	w := &world{T: t, stage: shared.stage, kube: shared.stage.Kube, snaps: shared.stage.Snapshots.SnapshotV1(), repeats: 2}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w.ctx = ctx
	t.Cleanup(cancel)
	w.ns = freshName(nameOf(t.Name()))
	w.driver = w.ns + ".csi.example"
	w.must(w.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}, metav1.CreateOptions{}))
	w.mustNot(shared.stage.Cluster.AwaitNamespace(ctx, w.ns))
	f := &fleet{world: w, casts: map[string]*stage.Cast{}, pairs: map[string][]*stage.Process{}}
	for node, size := range pools {
		cast, err := shared.stage.NewCast(ctx, stage.Roles{
			Name: w.driver, Node: node, Flags: []string{"--pool-capacity=" + size},
			Topology: map[string]map[string]string{node: {corev1.LabelHostname: node}},
		})
		w.mustNot(err)
		f.casts[node] = cast
		w.cast, w.script = cast, cast.Control // await looks at the processes of one; end looks at all
		t.Cleanup(func() {
			if err := cast.Close(); err != nil {
				t.Error(err)
			}
		})
		provisioner, err := cast.StartSidecar(stage.Provisioner, "--node-deployment", "--strict-topology",
			"--node-deployment-base-delay=10s", "--node-deployment-max-delay=10s")
		w.mustNot(err)
		snapshotter, err := cast.StartSidecar(stage.Snapshotter, "--node-deployment", "--bind-snapshots=own", "--enable-distributed-snapshotting",
			"--leader-election-namespace="+stage.Namespace, "--leader-election-lease-duration=4s", "--leader-election-renew-deadline=3s", "--leader-election-retry-period=1s")
		w.mustNot(err)
		f.pairs[node] = []*stage.Process{provisioner, snapshotter}
	}
	t.Cleanup(f.end) // the last to be registered is the first to run, while the drivers are there
	return f
}

// end deletes everything; nothing may be left on any node.
func (f *fleet) end() {
	f.Helper()
	if f.Failed() {
		f.world.explain()
		return
	}
	f.sweep()
	f.await("nothing is left, in the cluster and on any node (A3)", f.nothingLeftAnywhere)
	for node, cast := range f.casts {
		for _, p := range cast.Processes() {
			for _, death := range p.Deaths() {
				f.Errorf("A4: on %s: %s", node, death)
			}
		}
	}
	f.mustNot(f.kube.CoreV1().Namespaces().Delete(f.ctx, f.ns, metav1.DeleteOptions{}))
	f.mustNot(f.kube.StorageV1().StorageClasses().DeleteCollection(f.ctx, metav1.DeleteOptions{}, f.mine()))
	f.mustNot(f.snaps.VolumeSnapshotClasses().DeleteCollection(f.ctx, metav1.DeleteOptions{}, f.mine()))
}

func (f *fleet) nothingLeftAnywhere() (bool, string) {
	var left []string
	volumes, err := f.volumes()
	if err != nil {
		return unreadable(err)
	}
	for _, v := range volumes {
		left = append(left, "PersistentVolume "+v.Name)
	}
	for node, cast := range f.casts {
		inventory, err := cast.Control.Inventory(f.ctx)
		if err != nil {
			return unreadable(err)
		}
		if n := len(inventory.Volumes) + len(inventory.Snapshots); n > 0 {
			left = append(left, fmt.Sprintf("%d things on %s", n, node))
		}
	}
	return len(left) == 0, fmt.Sprintf("left: %q", left)
}

// on is the node whose driver stores a volume or a snapshot, by its handle, for certain only one.
func (f *fleet) on(handle string) string {
	f.Helper()
	var found []string
	for node, cast := range f.casts {
		inventory, err := cast.Control.Inventory(f.ctx)
		f.mustNot(err)
		for _, v := range inventory.Volumes {
			if v.ID == handle {
				found = append(found, node)
			}
		}
		for _, s := range inventory.Snapshots {
			if s.ID == handle {
				found = append(found, node)
			}
		}
	}
	slices.Sort(found)
	return strings.Join(found, ",")
}

// place is the node that a volume can be reached from; the volume has to be there, and nowhere else.
func (f *fleet) place(v *corev1.PersistentVolume) string {
	f.Helper()
	if v.Spec.NodeAffinity == nil {
		f.Fatalf("volume %s is nowhere", v.Name)
	}
	node := v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
	if on := f.on(v.Spec.CSI.VolumeHandle); on != node {
		f.Errorf("volume %s is for node %s, and stored on %q", v.Name, node, on)
	}
	return node
}

// taken is the node that a snapshot was taken on; its content has to say so.
func (f *fleet) taken(c *snapv1.VolumeSnapshotContent) string {
	f.Helper()
	node := f.on(*c.Status.SnapshotHandle)
	if label := c.Labels["snapshot.storage.kubernetes.io/managed-by"]; label != node {
		f.Errorf("content %s is for node %q, and taken on %q", c.Name, label, node)
	}
	return node
}

// callsOn counts what the driver of a node was asked.
func (f *fleet) callsOn(node, method string) int {
	f.Helper()
	all, err := f.casts[node].Control.Calls(f.ctx, method)
	f.mustNot(err)
	return len(all)
}

func onHosts(nodes ...string) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) {
		c.AllowedTopologies = []corev1.TopologySelectorTerm{{
			MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelHostname, Values: nodes}},
		}}
	}
}
