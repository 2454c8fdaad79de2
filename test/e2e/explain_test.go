// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// reader makes somebody who may read what explanations are about, and write nothing; it returns the kubeconfig.
func (w *world) reader() string {
	w.Helper()
	read := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list"}}
	}
	w.must(w.kube.CoreV1().ServiceAccounts(w.ns).Create(w.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{}))
	role := &rbacv1.ClusterRole{ObjectMeta: w.cluster("reader"), Rules: []rbacv1.PolicyRule{
		read("", "persistentvolumeclaims", "persistentvolumes", "nodes", "events"),
		read("storage.k8s.io", "storageclasses", "csinodes", "volumeattachments"),
		read(snapshotGroup, "volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses"),
	}}
	w.must(w.kube.RbacV1().ClusterRoles().Create(w.ctx, role, metav1.CreateOptions{}))
	w.must(w.kube.RbacV1().ClusterRoleBindings().Create(w.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: w.cluster("reader"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.ns, Name: "reader"}},
	}, metav1.CreateOptions{}))
	w.Cleanup(func() {
		_ = w.kube.RbacV1().ClusterRoleBindings().Delete(w.ctx, role.Name, metav1.DeleteOptions{})
		_ = w.kube.RbacV1().ClusterRoles().Delete(w.ctx, role.Name, metav1.DeleteOptions{})
	})
	path, err := shared.stage.Cluster.ServiceAccountKubeconfig(w.ctx, w.ns, "reader")
	w.mustNot(err)
	return path
}

// asker runs the explanations of both programs as one user.
type asker struct {
	*world
	kubeconfig string
}

// explain runs a program's own words about an object, and gives what it says and its exit code.
func (a asker) explain(p *stage.Process, args ...string) (string, int) {
	a.Helper()
	cmd := exec.CommandContext(a.ctx, p.Path, append([]string{"explain"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+a.kubeconfig)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		a.Fatal(err)
	}
	// Lines are broken between words for people.
	return strings.Join(strings.Fields(out.String()), " "), cmd.ProcessState.ExitCode()
}

// says waits for words: what Kubernetes and the sidecars do meanwhile takes its time.
func (a asker) says(p *stage.Process, args []string, words ...string) {
	a.Helper()
	a.await(p.Name+" explains "+strings.Join(args, " "), func() (bool, string) {
		said, code := a.explain(p, args...)
		if code != 0 {
			return false, said
		}
		return containsAll(said, words), said
	})
}

// TestExplain: both real programs explain waits on a real control plane, for a user who may only read, beside the driver
// and without it.
func TestExplain(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{})
	a := asker{w, w.reader()}
	provisioner, snapshotter := w.provisioner, w.snapshotter
	socket, none := "--csi-address="+w.cast.Socket, "--csi-address="

	w.claim("lost", w.ns+"-missing")
	a.says(provisioner, []string{"lost", "-n", w.ns, socket}, "(does not exist)", "create StorageClass "+w.ns+"-missing", "the driver said so itself")

	w.claim("idle", w.class("waiting", waiting))
	a.says(provisioner, []string{"idle", "-n", w.ns, none}, "WaitForFirstConsumer", "start a pod that uses the claim", "The driver was not asked")

	w.claim("nowhere", w.class("nowhere", waiting, allowing("of-nobody")))
	a.says(provisioner, []string{"nowhere", "-n", w.ns, none}, "in the way: allowedTopologies of StorageClass "+w.ns+"-nowhere fit no node", "kubectl edit storageclass "+w.ns+"-nowhere")
	admin := asker{w, w.stage.Cluster.Kubeconfig()}
	w.claim("unserved", w.class("unserved", func(c *storagev1.StorageClass) { c.Provisioner = "nobody." + w.ns + ".example" }))
	admin.says(provisioner, []string{"unserved", "-n", w.ns, none}, "[Create]", "in the way: nothing shows that anybody serves driver nobody."+w.ns+".example")
	if said, code := admin.explain(provisioner, "lost", "-n", w.ns+"-nowhere", none); code != 1 || !strings.Contains(said, "namespace "+w.ns+"-nowhere does not exist") {
		t.Errorf("of a claim in no namespace, with code %d: %s", code, said)
	}

	handle := w.disk("data")
	a.says(provisioner, []string{"-n", w.ns, "data", none}, "the claim has a volume", handle, "[Ignore]", "lifted by the provisioner of the driver", "ProvisioningSucceeded",
		"Which pods use the claim is not shown: listing pods: not allowed to you")

	rule := w.rule(w.script.Hang(w.ctx, control.On("CreateSnapshot"), 0))
	w.snapshot("snap", "data", w.snapshotClass("delete"))
	w.awaitCalls("CreateSnapshot", 1)
	a.says(snapshotter, []string{"-n", w.ns, "snap", socket}, "waiting for the driver", "Asks the driver for a snapshot named snapshot-", handle, "a create may be open", "[Create]")
	w.claim("copy", w.ns+"-class-data", fromSnapshot("snap"))
	a.says(provisioner, []string{"-n", w.ns, "copy", socket}, "Waits, and goes on by itself", "snapshotter explain -n "+w.ns+" snap", "[Reject]")
	w.release(rule)
	w.ready("snap")
	w.bound("copy")
	a.says(snapshotter, []string{"-n", w.ns, "snap", none, "--driver-name=" + w.driver}, "ready", "settled")

	said, code := a.explain(provisioner, "-n", w.ns, "copy", "-o=json", none)
	var report struct {
		Object   struct{ Kind, Name string }
		Machines []struct{ Step, Sentence string }
	}
	if err := json.Unmarshal([]byte(said), &report); code != 0 || err != nil || report.Object.Name != "copy" || len(report.Machines) != 2 {
		t.Errorf("code %d, error %v, says %s", code, err, said)
	}
	if said, code := a.explain(provisioner, "-n", w.ns, "nobody", none); code != 1 || !strings.Contains(said, "not found") {
		t.Errorf("of a claim that does not exist, with code %d: %s", code, said)
	}
	if said, code := a.explain(snapshotter, "snap", "other", none); code != 2 || !strings.Contains(said, "one VOLUMESNAPSHOT at a time") {
		t.Errorf("of two at once, with code %d: %s", code, said)
	}
	for _, name := range []string{"lost", "idle", "nowhere", "unserved"} {
		w.deleteClaim(name)
	}
}
