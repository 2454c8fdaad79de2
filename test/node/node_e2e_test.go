// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
)

const (
	// variable asks for real nodes, see test/pods.
	variable = "CSI_TANDEM_PODS"
	// victim makes the test's own binary a run that is there to be killed.
	victim = "CSI_TANDEM_VICTIM"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victim); dir != "" {
		if err := runAPod(context.Background(), dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("running")
		select {}
	}
	os.Exit(m.Run())
}

// runAPod starts a control plane and a node, and returns when a pod runs.
func runAPod(ctx context.Context, dir string) error {
	cluster, err := controlplane.Start(ctx, controlplane.Options{Dir: filepath.Join(dir, "c"), Out: os.Stderr})
	if err != nil {
		return err
	}
	mark, err := Announce(filepath.Join(dir, "n"), dir)
	if err != nil {
		return err
	}
	m, err := Start(ctx, Options{
		Mark: mark, Kubeconfig: cluster.Kubeconfig(), Kube: cluster.Clientset(), Nodes: []string{"worker-1"}, Out: os.Stderr,
	})
	if err != nil {
		return err
	}
	pods := cluster.Clientset().CoreV1().Pods(metav1.NamespaceDefault)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "hello"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: SandboxImage}}},
	}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	for deadline := time.Now().Add(2 * time.Minute); pod.Status.Phase != corev1.PodRunning; time.Sleep(look) {
		if pod, err = pods.Get(ctx, "hello", metav1.GetOptions{}); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it does not run: %v", pod.Status)
		}
	}
	said, err := m.Exec(ctx, pod, "cat", "/proc/1/comm")
	if err == nil && strings.TrimSpace(said) != "pause" {
		err = fmt.Errorf("in the container runs %q", said)
	}
	return err
}

// TestKilledRunLeavesNothing: a run that is killed with -9 while a pod runs takes its processes and mounts with it at once,
// and the next one removes its cgroups, its folder and its mark. Catches containers that go on because a shim has let go of
// them, and a clean-up that only those do who end in order.
func TestKilledRunLeavesNothing(t *testing.T) {
	if os.Getenv(variable) == "" {
		t.Skip("starts a real node; set " + variable + "=1, or run make e2e-pods")
	}
	if missing := Missing(); len(missing) > 0 {
		t.Fatal(strings.Join(missing, "; "))
	}
	dir, err := os.MkdirTemp("", "tandem-")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	inside := processesOf(filepath.Join(dir, "n"), dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // It was killed.
	if line != "running\n" {
		t.Fatalf("the run said %q", line)
	}
	if len(inside) < 3 {
		t.Errorf("only %q ran, which proves little", inside)
	}
	for deadline := time.Now().Add(10 * time.Second); len(processesOf(filepath.Join(dir, "n"), dir)) > 0; time.Sleep(look) {
		if time.Now().After(deadline) {
			t.Fatalf("still there: %q", processesOf(filepath.Join(dir, "n"), dir))
		}
	}
	var said strings.Builder
	if err := Sweep(&said); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), dir) {
		t.Errorf("it does not say what was left: %q", said.String())
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
	if err := Sweep(&said); err != nil || strings.Count(said.String(), dir) != 1 {
		t.Errorf("it was removed twice: %v, %q", err, said.String())
	}
}
