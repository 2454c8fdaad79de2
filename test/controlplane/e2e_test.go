// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// shared is one control plane for the tests that do not care who else uses it.
var shared struct {
	sync.Once
	cluster *Cluster
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func needsControlPlane(t *testing.T) {
	t.Helper()
	if os.Getenv("CSI_TANDEM_E2E") != "1" {
		t.Skip("starts a real control plane; set CSI_TANDEM_E2E=1 to run it")
	}
}

func sharedCluster(t *testing.T) *Cluster {
	t.Helper()
	needsControlPlane(t)
	shared.Do(func() {
		shared.cluster, shared.err = Start(t.Context(), Options{AuditLog: true, Out: os.Stderr})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

func newNamespace(t *testing.T, c *Cluster, name string) {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.Clientset().CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.AwaitNamespace(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

func buildPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"zone": "a"},
			Containers:   []corev1.Container{{Name: "main", Image: "example.com/nothing"}},
		},
	}
}

// scheduledTo waits until the real scheduler has chosen a node.
func scheduledTo(ctx context.Context, t *testing.T, c *Cluster, pod *corev1.Pod) string {
	t.Helper()
	pods := c.Clientset().CoreV1().Pods(pod.Namespace)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var node string
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		current, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		node = current.Spec.NodeName
		return node != "", fmt.Errorf("pod %s: %v", pod.Name, current.Status.Conditions)
	})
	if node == "" {
		t.Fatal(err)
	}
	return node
}

func TestPodIsScheduledByTopology(t *testing.T) {
	c := sharedCluster(t)
	newNamespace(t, c, "scheduling")
	limit := int32(3)
	for _, node := range []Node{
		{Name: "node-a", Labels: map[string]string{"zone": "a"}, Drivers: []NodeDriver{{
			Name: "driver.example", TopologyKeys: []string{"zone"}, VolumeLimit: &limit,
		}}},
		{Name: "node-b", Labels: map[string]string{"zone": "b"}},
		{Name: "node-c", Labels: map[string]string{"zone": "a"}, Unschedulable: true},
	} {
		if err := c.AddNode(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	checkNodeObjects(t, c)

	pods := c.Clientset().CoreV1().Pods("scheduling")
	pod, err := pods.Create(t.Context(), buildPod("first"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := scheduledTo(t.Context(), t, c, pod); got != "node-a" {
		t.Errorf("the pod went to %s, want node-a", got)
	}

	// The label moves, and the next pod moves with it.
	zone := "a"
	if err := c.UpdateNodeLabels(t.Context(), "node-b", map[string]*string{"zone": &zone}); err != nil {
		t.Fatal(err)
	}
	if err := c.UpdateNodeLabels(t.Context(), "node-a", map[string]*string{"zone": nil}); err != nil {
		t.Fatal(err)
	}
	if pod, err = pods.Create(t.Context(), buildPod("second"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := scheduledTo(t.Context(), t, c, pod); got != "node-b" {
		t.Errorf("after the labels moved the pod went to %s, want node-b", got)
	}
	checkRemoval(t, c)
}

func checkNodeObjects(t *testing.T, c *Cluster) {
	t.Helper()
	node, err := c.Clientset().CoreV1().Nodes().Get(t.Context(), "node-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(node.Spec.Taints) != 0 || node.Labels[corev1.LabelHostname] != "node-a" {
		t.Errorf("node-a has taints %v and labels %v", node.Spec.Taints, node.Labels)
	}
	drivers, err := c.Clientset().StorageV1().CSINodes().Get(t.Context(), "node-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := drivers.Spec.Drivers
	if len(got) != 1 || got[0].NodeID != "node-a" || *got[0].Allocatable.Count != 3 || got[0].TopologyKeys[0] != "zone" {
		t.Errorf("CSINode node-a has drivers %+v", got)
	}
}

func checkRemoval(t *testing.T, c *Cluster) {
	t.Helper()
	for _, name := range []string{"node-a", "node-b", "node-c"} {
		if err := c.RemoveNode(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Clientset().StorageV1().CSINodes().Get(t.Context(), "node-a", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("after the removal of its node the CSINode answers %v", err)
	}
	if err := c.RemoveNode(t.Context(), "node-a"); !apierrors.IsNotFound(err) {
		t.Errorf("removing a node twice answers %v", err)
	}
}

const readerRole = `apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: accounts}]
`

func TestServiceAccountHasItsRightsAndNoMore(t *testing.T) {
	c := sharedCluster(t)
	newNamespace(t, c, "accounts")
	if err := c.ApplyBytes(t.Context(), []byte(readerRole), "accounts"); err != nil {
		t.Fatal(err)
	}
	path, err := c.ServiceAccountKubeconfig(t.Context(), "accounts", "reader")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	err = eventually(ctx, func(ctx context.Context) error {
		_, err := client.CoreV1().ConfigMaps("accounts").List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		t.Errorf("a right that was granted: %v", err)
	}
	if _, err := client.CoreV1().Secrets("accounts").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("secrets answered %v, want Forbidden", err)
	}
	if _, err := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("another namespace answered %v, want Forbidden", err)
	}
	if _, err := c.ServiceAccountKubeconfig(ctx, "accounts", "nobody"); err == nil {
		t.Error("an account that does not exist got a token")
	}
	checkAudit(t, c)
}

// checkAudit finds what the account just did in the audit log.
func checkAudit(t *testing.T, c *Cluster) {
	t.Helper()
	key := AuditKey{User: "system:serviceaccount:accounts:reader", Verb: "list", Resource: "secrets", Code: 403}
	err := eventually(t.Context(), func(context.Context) error {
		counts, err := AuditCounts(c.AuditLog())
		if err == nil && counts[key] != 1 {
			err = fmt.Errorf("got %d requests %+v, want 1", counts[key], key)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func eventually(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return poll(ctx, func(ctx context.Context) (bool, error) {
		err := try(ctx)
		return err == nil, err
	})
}

// The only test with a cluster of its own: it breaks it.
func TestLifeAndDeath(t *testing.T) {
	needsControlPlane(t)
	c, err := Start(t.Context(), Options{Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	checkReadyAtOnce(t, c)
	newNamespace(t, c, "survivor")
	for _, part := range []Part{APIServer, Etcd} {
		old := c.ProcessID(part)
		if err := c.StartPart(t.Context(), part); err == nil || !strings.Contains(err.Error(), "running already") {
			t.Errorf("starting %s twice: got error %v", part, err)
		}
		if err := c.Kill(part); err != nil {
			t.Fatal(err)
		}
		if err := c.StartPart(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		if now := c.ProcessID(part); now == 0 || now == old {
			t.Errorf("%s had process %d and now has %d", part, old, now)
		}
		err := eventually(t.Context(), func(ctx context.Context) error {
			_, err := c.Clientset().CoreV1().Namespaces().Get(ctx, "survivor", metav1.GetOptions{})
			return err
		})
		if err != nil {
			t.Errorf("after %s came back: %v", part, err)
		}
	}
	// The controllers have found the new API server too.
	newNamespace(t, c, "after")
	if err := c.StopPart(Scheduler); err != nil || c.ProcessID(Scheduler) != 0 {
		t.Errorf("stopping the scheduler: %v, process %d", err, c.ProcessID(Scheduler))
	}
	checkStop(t, c)
}

func checkReadyAtOnce(t *testing.T, c *Cluster) {
	t.Helper()
	version, err := c.Clientset().Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.Major != "1" || version.Minor == "" || !strings.HasPrefix(version.GitVersion, "v1."+version.Minor+".") {
		t.Errorf("the server says that it is %+v", version)
	}
	pod := buildPod("at-once")
	pod, err = c.Clientset().CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("a pod cannot be created right after the start: %v", err)
	}
}

func checkStop(t *testing.T, c *Cluster) {
	t.Helper()
	pids := map[Part]int{}
	for _, part := range []Part{Etcd, APIServer, ControllerManager} {
		if pids[part] = c.ProcessID(part); pids[part] == 0 {
			t.Errorf("%s does not run", part)
		}
	}
	for range 2 {
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	for part, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s, process %d, survived: %v", part, pid, err)
		}
	}
	if _, err := os.Stat(c.Dir()); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := c.StartPart(t.Context(), Etcd); err == nil {
		t.Error("a part was started after Stop")
	}
}

func TestFailedStartShowsTheLog(t *testing.T) {
	needsControlPlane(t)
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{Dir: dir, Args: map[Part][]string{APIServer: {"--no-such-flag"}}})
	var failed *PartError
	if !errors.As(err, &failed) || failed.Part != APIServer || !strings.Contains(failed.Log, "no-such-flag") {
		t.Errorf("got error %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Errorf("a folder that was given must stay: %v", err)
	}
}
