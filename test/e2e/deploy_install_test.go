// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// installation is what an overlay has installed, with credentials of its accounts. Its programs run here with the flags of their
// containers, as those accounts, with the rights of the overlay and no others.
type installation struct {
	*testing.T
	ctx       context.Context
	namespace string
	manifest  []byte
	// account is that of the pair.
	account string
}

// install applies what was built for a namespace, which is taken away with the test.
func install(t *testing.T, namespace string, manifest []byte) *installation {
	t.Helper()
	theStage(t)
	// Outlives the test's own context, which ends before the clean-up begins.
	i := &installation{T: t, ctx: context.WithoutCancel(t.Context()), namespace: namespace, manifest: manifest}
	i.apply(manifest)
	t.Cleanup(func() {
		uninstall(t, namespace, manifest)
	})
	i.account = i.accountOf("csi-provisioner")
	return i
}

// uninstall deletes what was applied. No kubelet lets go of the pods here, and so they are forced.
func uninstall(t *testing.T, namespace string, manifest []byte) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	err := shared.stage.Cluster.DeleteBytes(ctx, manifest, "")
	force := metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}
	err = errors.Join(err, shared.stage.Kube.CoreV1().Pods(namespace).DeleteCollection(ctx, force, metav1.ListOptions{}))
	if err != nil {
		t.Error(err)
	}
}

func (i *installation) apply(manifest []byte) {
	i.Helper()
	if err := shared.stage.Cluster.ApplyBytes(i.ctx, manifest, ""); err != nil {
		i.Fatal(err)
	}
}

// accountOf is the account of the pod with a container of that name.
func (i *installation) accountOf(name string) string {
	i.Helper()
	for _, template := range templates(i.T, i.manifest) {
		if slices.ContainsFunc(template.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }) {
			return template.Spec.ServiceAccountName
		}
	}
	i.Fatalf("there is no container %q", name)
	return ""
}

func (i *installation) kubeconfig(account string) string {
	i.Helper()
	path, err := shared.stage.Cluster.ServiceAccountKubeconfig(i.ctx, i.namespace, account)
	if err != nil {
		i.Fatal(err)
	}
	return path
}

// flags are those of a container, with what tells a process outside of a pod where it is.
func (i *installation) flags(name string, more ...string) []string {
	i.Helper()
	where := []string{"--kubeconfig=" + i.kubeconfig(i.accountOf(name)), "--leader-election-namespace=" + i.namespace}
	return slices.Concat(flagsOf(container(i.T, i.manifest, name)), where, more)
}

// setup is that of a world beside this installation.
func (i *installation) setup(s setup) setup {
	i.Helper()
	cast := s.cast
	s.provisioner = i.flags("csi-provisioner", s.provisioner...)
	s.snapshotter = i.flags("csi-snapshotter", s.snapshotter...)
	s.cast = func(w *world, roles *stage.Roles) {
		roles.Env = append(roles.Env, "POD_NAMESPACE="+i.namespace, "NAMESPACE="+i.namespace, "POD_NAME="+i.podName(w))
		if cast != nil {
			cast(w, roles)
		}
	}
	return s
}

// podName is a pod that the installation's own controllers have made.
func (i *installation) podName(w *world) string {
	w.Helper()
	var name string
	w.await("the installation has a pod", func() (bool, string) {
		pods, err := w.kube.CoreV1().Pods(i.namespace).List(w.ctx, metav1.ListOptions{})
		if err != nil {
			return unreadable(err)
		}
		for _, p := range pods.Items {
			if p.Spec.ServiceAccountName == i.account {
				name = p.Name
			}
		}
		return name != "", "there is none"
	})
	return name
}

// startController starts the program under the name, and with the flags and the account, of the overlay's snapshot-controller.
func (i *installation) startController(w *world) *stage.Process {
	w.Helper()
	link := filepath.Join(w.cast.Dir(), "snapshot-controller")
	w.mustNot(os.Symlink(w.snapshotter.Path, link))
	p := &stage.Process{Name: "snapshot-controller", Path: link, Args: i.flags("snapshot-controller"), Log: filepath.Join(w.cast.Dir(), "snapshot-controller.log")}
	w.mustNot(p.Start())
	w.others = append(w.others, p)
	return p
}

// seen is what the API server has written down of an account.
func (i *installation) seen(account string) seen {
	i.Helper()
	s, err := readAudit(shared.stage.Cluster.AuditLog(), fmt.Sprintf("system:serviceaccount:%s:%s", i.namespace, account))
	if err != nil {
		i.Fatal(err)
	}
	return s
}

// checkUse: nothing was refused, and all that is granted was used, but for what is named here.
func (i *installation) checkUse(w *world, account string, idle ...verb) {
	w.Helper()
	// A watch is written down when it is over.
	for _, p := range append(w.others, w.provisioner, w.snapshotter) {
		p.Terminate()
	}
	w.await("every right of "+account+" was used", func() (bool, string) {
		var unused []verb
		s := i.seen(account)
		for _, v := range verbsOf(i.T, i.manifest, account) {
			if !s.used[v] && !slices.Contains(idle, v) {
				unused = append(unused, v)
			}
		}
		return len(unused) == 0, fmt.Sprintf("never used: %q", unused)
	})
	for line := range i.seen(account).refused {
		w.Errorf("%s was refused: %s", account, line)
	}
}

// missing are the rights that a program has said it lacks.
func missing(t *testing.T, p *stage.Process) []string {
	t.Helper()
	log, err := os.ReadFile(p.Log)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(log)) {
		if _, text, found := strings.Cut(line, "missing right: "); found {
			all = append(all, strings.TrimSuffix(strings.TrimSpace(text), `"`))
		}
	}
	return all
}
