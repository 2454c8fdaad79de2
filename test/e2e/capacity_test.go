// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// noPoll is a poll so rare that nothing here can be owed to it.
const noPoll = "--capacity-poll-interval=1h"

// withCapacity is a driver with so much room in each zone, whose sidecar publishes it. It lives in a pod that a
// ConfigMap controls: any kind will do, and this one has no controller of its own.
func withCapacity(t *testing.T, pools map[string]string, flags ...string) *world {
	return begin(t, setup{
		withoutSnapshotter: true, provisioner: append([]string{"--enable-capacity", "--strict-topology"}, flags...),
		cast: func(w *world, roles *stage.Roles) {
			owner := w.installation()
			roles.Capacity, roles.Env = true, []string{"NAMESPACE=" + stage.Namespace, "POD_NAME=" + owner}
			roles.Flags = append(roles.Flags, "--pools="+poolsFile(t, pools))
		},
	})
}

func poolsFile(t *testing.T, sizes map[string]string) string {
	t.Helper()
	type pool struct {
		Segment  map[string]string `json:"segment"`
		Capacity string            `json:"capacity"`
	}
	var pools []pool
	for zone, size := range sizes {
		pools = append(pools, pool{map[string]string{zoneKey: zone}, size})
	}
	content, err := json.Marshal(pools)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pools.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// installation makes a pod and what controls it, and when all is over takes the latter away: the objects that it owns
// have to follow.
func (w *world) installation() string {
	w.Helper()
	name := w.ns
	maps, pods := w.kube.CoreV1().ConfigMaps(stage.Namespace), w.kube.CoreV1().Pods(stage.Namespace)
	owner, err := maps.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	w.mustNot(err)
	reference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)}
	w.must(pods.Create(w.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{reference}},
		Spec: corev1.PodSpec{
			SchedulerName: "nobody",
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(65532)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "driver", Image: "registry.k8s.io/pause:3.10",
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}, metav1.CreateOptions{}))
	w.Cleanup(func() {
		w.mustNot(maps.Delete(w.ctx, name, metav1.DeleteOptions{}))
		w.awaitCapacities("T94 what the owner leaves behind goes with it")
	})
	return name
}

func (w *world) capacities() ([]storagev1.CSIStorageCapacity, error) {
	list, err := w.kube.StorageV1().CSIStorageCapacities(stage.Namespace).List(w.ctx, metav1.ListOptions{
		LabelSelector: "csi.storage.k8s.io/managed-by=external-provisioner,csi.storage.k8s.io/drivername=" + w.driver,
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// awaitCapacities waits until exactly these are published, each as "class zone size".
func (w *world) awaitCapacities(what string, want ...string) {
	w.Helper()
	slices.Sort(want)
	w.await(what, func() (bool, string) {
		objects, err := w.capacities()
		if err != nil {
			return unreadable(err)
		}
		var got []string
		for _, o := range objects {
			got = append(got, fmt.Sprint(strings.TrimPrefix(o.StorageClassName, w.ns+"-"), " ", slices.Collect(maps.Values(o.NodeTopology.MatchLabels))[0], " ", o.Capacity))
		}
		slices.Sort(got)
		return slices.Equal(got, want), fmt.Sprintf("there is %q, want %q", got, want)
	})
}

// TestCapacityObjects: what is published follows classes, values and the hands of others; a second life takes over what
// the first has left.
func TestCapacityObjects(t *testing.T) {
	t.Parallel()
	w := withCapacity(t, map[string]string{"z1": "10Gi", "z2": "0"}, noPoll)
	w.class("now")
	w.class("late", waiting)
	w.class("other", waiting, parameters(map[string]string{"csi.storage.k8s.io/fstype": "ext4"}))
	all := []string{"late z1 10Gi", "late z2 0", "other z1 10Gi", "other z2 0"}
	w.awaitCapacities("T89 T90 T91 each segment and late binding class has its object, zero too", all...)
	objects, err := w.capacities()
	w.mustNot(err)
	for _, o := range objects {
		owners := o.OwnerReferences
		if !strings.HasPrefix(o.Name, "csisc-") || len(owners) != 1 || owners[0].Name != w.ns || !ptr.Deref(owners[0].Controller, false) || owners[0].BlockOwnerDeletion != nil {
			t.Errorf("T89 T94: %s belongs to %s", o.Name, text(owners))
		}
	}
	for _, call := range w.calls("GetCapacity") {
		if strings.Contains(string(call.Request), "csi.storage.k8s.io/") {
			t.Errorf("PW-6: the driver was asked with %s", call.Request)
		}
	}

	own := w.kube.StorageV1().CSIStorageCapacities(stage.Namespace)
	w.mustNot(own.Delete(w.ctx, objects[0].Name, metav1.DeleteOptions{}))
	w.awaitCapacities("T92 what somebody deletes is made again", all...)
	changed := objects[1].DeepCopy()
	changed.Capacity = nil
	w.must(own.Update(w.ctx, changed, metav1.UpdateOptions{}))
	w.awaitCapacities("T92 what somebody changes is put right", all...)

	w.provisioner.Kill()
	w.mustNot(w.kube.StorageV1().StorageClasses().Delete(w.ctx, w.ns+"-other", metav1.DeleteOptions{}))
	before, err := w.capacities()
	w.mustNot(err)
	w.mustNot(w.provisioner.Start())
	w.awaitCapacities("B065 T91 a class that went while nobody looked has no objects", "late z1 10Gi", "late z2 0")
	after, err := w.capacities()
	w.mustNot(err)
	for _, o := range after {
		i := slices.IndexFunc(before, func(b storagev1.CSIStorageCapacity) bool { return b.UID == o.UID })
		if i < 0 || before[i].ResourceVersion != o.ResourceVersion {
			t.Errorf("T91: %s was not taken over as it was", o.Name)
		}
	}
	w.mustNot(w.kube.StorageV1().StorageClasses().Delete(w.ctx, w.ns+"-late", metav1.DeleteOptions{}))
	w.awaitCapacities("T91 the last class goes, and its objects")
}

// TestPodsGoWhereTheRoomIs: the scheduler knows where there is room, and when that runs out behind its back, one
// failure leads elsewhere and is told at once, without a poll.
func TestPodsGoWhereTheRoomIs(t *testing.T) {
	t.Parallel()
	w := withCapacity(t, map[string]string{"z1": "0", "z2": "1536Mi"}, noPoll)
	late := w.class("late", waiting)
	w.awaitCapacities("T89 the rooms are known", "late z1 0", "late z2 1536Mi")
	w.claim("first", late)
	w.pod("first", "first", "")
	w.runs("first")
	checkZones(t, w.bound("first"), "z2")
	w.awaitCapacities("T95 a new volume has made less of it", "late z1 0", "late z2 512Mi")

	w.claim("second", late)
	w.pod("second", "second", "")
	w.told("second", "FailedScheduling", "did not have enough free storage")
	if calls := w.calls("CreateVolume"); len(calls) != 1 {
		t.Errorf("the driver was asked for %d volumes, although there is room for one", len(calls))
	}
	// The scheduler says of which node it was, and not of which driver, class and segment.
	asker{w, shared.stage.Cluster.Kubeconfig()}.says(w.provisioner, []string{"second", "-n", w.ns, "--csi-address="},
		"Room, as the scheduler is told of it", "z1: 0 free, 0 for one volume, too little", "z2: 512Mi free, 512Mi for one volume, too little", "CSIStorageCapacity "+stage.Namespace+"/csisc-")
	w.endPod("first")
	w.deleteClaim("first")
	w.runs("second")
	checkZones(t, w.bound("second"), "z2")
	w.awaitCapacities("T95 a volume was deleted and another made", "late z1 0", "late z2 512Mi")
}

// TestRoomThatRanOut: what is published is not true any more. The driver refuses, the claim is given back, the object is
// right at once, so that the scheduler does not choose the same node again, and the pod goes where there is room.
func TestRoomThatRanOut(t *testing.T) {
	t.Parallel()
	w := withCapacity(t, map[string]string{"z1": "10Gi", "z2": "10Gi"}, noPoll)
	late := w.class("late", waiting)
	w.awaitCapacities("both have room", "late z1 10Gi", "late z2 10Gi")
	w.mustNot(w.cast.MakeVolume(w.ctx, "foreign", map[string]string{zoneKey: "z1"}, 10<<30))
	w.claim("data", late)
	w.pod("app", "data", "", func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"worker-1"},
				}}},
			}},
		}}
	})
	w.told("data", "Warning ProvisioningFailed", "code = ResourceExhausted")
	refused := time.Now()
	w.awaitCapacities("PP-8 the refusal was a reason to ask", "late z1 0", "late z2 10Gi")
	corrected := time.Since(refused)
	w.runs("app")
	checkZones(t, w.bound("data"), "z2")
	w.awaitCapacities("T95 and the new volume another", "late z1 0", "late z2 9Gi")
	t.Logf("the object was corrected %v after the refusal was told", corrected.Round(time.Millisecond))
	w.mustNot(w.script.Forget(w.ctx, "foreign"))
}

// TestSegmentsThatMove: objects follow the labels of nodes. The key is the world's own, since all share the nodes.
func TestSegmentsThatMove(t *testing.T) {
	t.Parallel()
	var key string
	w := begin(t, setup{
		withoutSnapshotter: true, provisioner: []string{"--enable-capacity", noPoll},
		cast: func(w *world, roles *stage.Roles) {
			key = w.ns + ".example/place"
			roles.Env = []string{"NAMESPACE=" + stage.Namespace, "POD_NAME=" + w.installation()}
			roles.Topology = map[string]map[string]string{"worker-1": {key: "p1"}, "worker-2": {key: "p2"}}
			roles.Flags = append(roles.Flags, "--pool-capacity=10Gi")
		},
	})
	label := func(node, place string) {
		change := map[string]*string{key: nil}
		if place != "" {
			change[key] = ptr.To(place)
		}
		w.mustNot(w.stage.Cluster.UpdateNodeLabels(w.ctx, node, change))
	}
	t.Cleanup(func() { label("worker-1", ""); label("worker-2", "") })
	w.class("late", waiting)
	for _, step := range []struct {
		name        string
		node, place string
		want        []string
	}{
		{"T93 a node without the label is no place", "worker-1", "p1", []string{"late p1 10Gi"}},
		{"T93 a place that nobody knew", "worker-2", "p2", []string{"late p1 10Gi", "late p2 10Gi"}},
		{"T93 a node moves", "worker-2", "p3", []string{"late p1 10Gi", "late p3 0"}},
		{"T93 two nodes in one place", "worker-2", "p1", []string{"late p1 10Gi"}},
		{"T93 and one leaves it", "worker-1", "", []string{"late p1 10Gi"}},
		{"T93 and the other", "worker-2", "", nil},
	} {
		label(step.node, step.place)
		w.awaitCapacities(step.name, step.want...)
	}
}

// TestHangingSegment: a segment about which the driver does not answer holds up no other, and has its object when it does.
func TestHangingSegment(t *testing.T) {
	t.Parallel()
	w := withCapacity(t, map[string]string{"z1": "10Gi", "z2": "10Gi"}, noPoll, "--timeout=2s", "--capacity-threads=1")
	w.class("late", waiting)
	w.awaitCapacities("both answer", "late z1 10Gi", "late z2 10Gi")
	rule := w.rule(w.script.Hang(w.ctx, control.On("GetCapacity").About(zoneKey+"=z1"), 0))
	w.class("other", waiting, parameters(map[string]string{"pool": "other"}))
	w.awaitCapacities("B067 the others go on, and the old value stays", "late z1 10Gi", "late z2 10Gi", "other z2 10Gi")
	w.release(rule)
	w.awaitCapacities("B067 and it comes back by itself", "late z1 10Gi", "late z2 10Gi", "other z1 10Gi", "other z2 10Gi")
}

// TestCapacityCannotBegin: what nobody can cure but who has written the manifest ends the process, and says what to do.
func TestCapacityCannotBegin(t *testing.T) {
	t.Parallel()
	w := withCapacity(t, map[string]string{"z1": "10Gi"})
	w.provisioner.Terminate()
	for _, row := range []struct{ name, env, args, says string }{
		{"no namespace", "", "", "set the variable NAMESPACE"},
		{"no pod", "NAMESPACE=csi-tandem", "", "set the variable POD_NAME"},
		{"T94 a pod that is not there", "NAMESPACE=csi-tandem POD_NAME=nobody", "", "reading pod csi-tandem/nobody"},
		{"T94 an owner whose owner is not known", "NAMESPACE=csi-tandem POD_NAME=" + w.ns, "--capacity-ownerref-level=2", "the owners of a ConfigMap of v1 cannot be read"},
	} {
		p := w.provisioner
		ctx, cancel := context.WithTimeout(w.ctx, patience)
		command := exec.CommandContext(ctx, p.Path, append(slices.Clip(p.Args), strings.Fields(row.args)...)...)
		command.Env = strings.Fields(row.env)
		said, err := command.CombinedOutput()
		cancel()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 255 || !strings.Contains(string(said), row.says) {
			t.Errorf("%s: %v, want code 255 and %q in\n%s", row.name, err, row.says, said)
		}
	}
	w.mustNot(w.provisioner.Start())
}
