// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
)

// needsNodes skips where real nodes cannot be, and says why.
func needsNodes(t *testing.T) {
	t.Helper()
	if os.Getenv("CSI_TANDEM_PODS") != "1" {
		t.Skip("starts real nodes; set CSI_TANDEM_PODS=1 to run it")
	}
	if missing := Missing(); len(missing) > 0 {
		t.Skip(missing)
	}
}

func TestAPodRuns(t *testing.T) {
	needsNodes(t)
	dir, err := os.MkdirTemp("", "tandem-node-")
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{Dir: filepath.Join(dir, "c"), Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	m, err := Start(t.Context(), Options{
		Dir: filepath.Join(dir, "n"), Remove: dir, Kubeconfig: cluster.Kubeconfig(), Kube: cluster.Clientset(), Nodes: []string{"worker-1"}, Out: os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	pods := cluster.Clientset().CoreV1().Pods("default")
	_, err = pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "hello"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: SandboxImage}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var pod *corev1.Pod
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(look) {
		if pod, err = pods.Get(t.Context(), "hello", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		if pod.Status.Phase == corev1.PodRunning {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not run: %+v", pod.Status)
		}
	}
	out, err := m.Exec(t.Context(), pod, "sh", "-c", "echo I am $(id -u); cat /proc/1/cmdline")
	t.Logf("%q %v", out, err)
	if err != nil {
		t.Error(err)
	}
	_ = pods.Delete(t.Context(), "hello", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
	if err := m.Stop(); err != nil {
		t.Error(err)
	}
	if err := cluster.Stop(); err != nil {
		t.Error(err)
	}
	if !t.Failed() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}
