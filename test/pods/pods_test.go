// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/examples/driver/loop"
	"github.com/csi-tandem/csi-tandem/test/controlplane"
	"github.com/csi-tandem/csi-tandem/test/node"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

const (
	// variable asks for these tests, which then fail where real nodes cannot be.
	variable = "CSI_TANDEM_PODS"

	patience   = 2 * time.Minute
	look       = 100 * time.Millisecond
	driverName = "pods.csi.example"
	zoneKey    = "topology.kubernetes.io/zone"
	first      = "worker-1"
	second     = "worker-2"
	snapGroup  = "snapshot.storage.k8s.io"

	immediate = "immediate"
	late      = "late"
	snapClass = "snaps"
)

// gates are for claims whose source is in another namespace.
const gates = "--feature-gates=CrossNamespaceVolumeDataSource=true"

// shared is the one stage: two real nodes in two zones, the driver and both sidecars.
var shared struct {
	sync.Once
	stage                    *stage.Stage
	cast                     *stage.Cast
	provisioner, snapshotter *stage.Process
	err                      error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.stage != nil {
		// It fails too if a process, a mount, a cgroup or a loop device is left.
		code = shared.stage.Leave(code, func(bool) []string { return deaths() })
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// deaths are ends that nobody wanted.
func deaths() []string {
	all := shared.stage.Machine.Deaths()
	if shared.cast != nil {
		for _, p := range shared.cast.Processes() {
			all = append(all, p.Deaths()...)
		}
	}
	return all
}

func open(ctx context.Context) error {
	var err error
	shared.stage, err = stage.Open(ctx, stage.Options{
		Out: os.Stderr, Real: []string{first, second},
		Args: map[controlplane.Part][]string{controlplane.APIServer: {gates}},
	})
	if err != nil {
		return err
	}
	shared.cast, err = shared.stage.NewCast(ctx, stage.Roles{
		Name: driverName, Topology: map[string]map[string]string{first: {zoneKey: "z1"}, second: {zoneKey: "z2"}},
	})
	if err != nil {
		return err
	}
	if shared.provisioner, err = shared.cast.StartSidecar(stage.Provisioner, gates, "--retry-interval-start=200ms"); err != nil {
		return err
	}
	if shared.snapshotter, err = shared.cast.StartSidecar(stage.Snapshotter); err != nil {
		return err
	}
	return classes(ctx)
}

func classes(ctx context.Context) error {
	for name, binding := range map[string]storagev1.VolumeBindingMode{immediate: storagev1.VolumeBindingImmediate, late: storagev1.VolumeBindingWaitForFirstConsumer} {
		class := &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driverName,
			ReclaimPolicy: ptr.To(corev1.PersistentVolumeReclaimDelete), VolumeBindingMode: ptr.To(binding),
		}
		if _, err := shared.stage.Kube.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	class := &snapv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: snapClass}, Driver: driverName, DeletionPolicy: snapv1.VolumeSnapshotContentDelete}
	_, err := shared.stage.Snapshots.SnapshotV1().VolumeSnapshotClasses().Create(ctx, class, metav1.CreateOptions{})
	return err
}

// world is a namespace for one test.
type world struct {
	*testing.T
	ctx context.Context
	ns  string
}

// begin makes a world. With the test everything in it goes, and nothing of it may stay at the driver.
func begin(t *testing.T) *world {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skip("starts real nodes; set " + variable + "=1, or run make e2e-pods")
	}
	if missing := node.Missing(); len(missing) > 0 {
		t.Fatal(strings.Join(missing, "; "))
	}
	shared.Do(func() { shared.err = open(context.WithoutCancel(t.Context())) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &world{T: t, ctx: ctx, ns: strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))}
	t.Cleanup(cancel)
	w.namespace(w.ns)
	return w
}

// namespace makes one, and with the test deletes it and waits until nothing of its claims is at the driver.
func (w *world) namespace(name string) {
	w.Helper()
	kube := shared.stage.Kube
	_, err := kube.CoreV1().Namespaces().Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	w.must(err)
	w.must(shared.stage.Cluster.AwaitNamespace(w.ctx, name))
	w.Cleanup(func() {
		w.must(kube.CoreV1().Namespaces().Delete(w.ctx, name, metav1.DeleteOptions{}))
		w.await("nothing of "+name+" is left", func() (bool, string) {
			volumes, err := kube.CoreV1().PersistentVolumes().List(w.ctx, metav1.ListOptions{})
			if err != nil {
				return false, err.Error()
			}
			left := map[string]bool{}
			for _, v := range volumes.Items {
				if v.Spec.ClaimRef != nil && v.Spec.ClaimRef.Namespace == name {
					return false, "volume " + v.Name + " is " + string(v.Status.Phase)
				}
				left[v.Name] = true
			}
			stored, err := shared.cast.Control.Inventory(w.ctx)
			if err != nil {
				return false, err.Error()
			}
			for _, v := range stored.Volumes {
				if !left[v.Name] {
					return false, "the driver has " + v.Name
				}
			}
			_, err = kube.CoreV1().Namespaces().Get(w.ctx, name, metav1.GetOptions{})
			return err != nil, "the namespace is there"
		})
	})
}

// needsDevices skips where a block volume cannot be a device.
func needsDevices(t *testing.T) {
	t.Helper()
	if err := loop.Probe(); err != nil {
		t.Skip(err)
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) await(what string, holds func() (bool, string)) {
	w.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(look) {
		done, why := holds()
		if done {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("it did not come that %s: %s", what, why)
		}
	}
}

// explain asks one of the programs about an object, until it says the words: what it speaks of goes on meanwhile.
func (w *world) explain(p *stage.Process, name string, words ...string) {
	w.Helper()
	w.await(p.Name+" explains "+name, func() (bool, string) {
		cmd := exec.CommandContext(w.ctx, p.Path, "explain", "-n", w.ns, name, "--csi-address="+shared.cast.Socket)
		if p == shared.provisioner {
			cmd.Args = append(cmd.Args, gates)
		}
		cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.stage.Cluster.Kubeconfig())
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil && !errors.Is(err, context.Canceled) {
			return false, fmt.Sprintf("%v: %s", err, out.String())
		}
		// Lines are broken between words for people.
		said := strings.Join(strings.Fields(out.String()), " ")
		for _, word := range words {
			if !strings.Contains(said, word) {
				return false, fmt.Sprintf("it does not say %q: %s", word, said)
			}
		}
		return true, ""
	})
}
