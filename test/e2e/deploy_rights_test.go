// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// binders are further processes.
	binders []*stage.Process
}

// install applies what was built for a namespace, which is taken away with the test.
func install(t *testing.T, namespace string, manifest []byte) *installation {
	t.Helper()
	theStage(t)
	// Outlives the test's own context, which ends before the clean-up begins.
	i := &installation{T: t, ctx: context.WithoutCancel(t.Context()), namespace: namespace, manifest: manifest}
	i.apply(manifest)
	t.Cleanup(func() {
		if err := shared.stage.Cluster.DeleteBytes(i.ctx, manifest, ""); err != nil {
			t.Error(err)
		}
	})
	i.account = i.accountOf("csi-provisioner")
	return i
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
	i.binders = append(i.binders, p)
	w.Cleanup(func() {
		for _, death := range p.Deaths() {
			w.Error(death)
		}
		p.Terminate()
	})
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

// checkUse: nothing was refused, and all that is granted was used, but for lists, which the programs ask for and this API server
// streams instead, and what is named here.
func (i *installation) checkUse(w *world, account string, idle ...verb) {
	w.Helper()
	// A watch is written down when it is over.
	for _, p := range append(i.binders, w.provisioner, w.snapshotter) {
		p.Terminate()
	}
	w.await("every right of "+account+" was used", func() (bool, string) {
		var unused []verb
		s := i.seen(account)
		for _, v := range verbsOf(i.T, i.manifest, account) {
			if !s.used[v] && !strings.HasSuffix(string(v), " list") && !slices.Contains(idle, v) {
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

// someNamespace stands in what is built for the namespace and the prefix of an installation.
const someNamespace = "rights-somewhere"

func rightsOverlay(base string, components ...string) overlay {
	o := aside("", base, components...)
	o.namespace, o.prefix = someNamespace, someNamespace+"-"
	return o
}

func in(namespace string, manifest []byte) []byte {
	return []byte(strings.ReplaceAll(string(manifest), someNamespace, namespace))
}

// TestRightsOfEachFeature: with what a base and its components grant, and not a verb more, both programs do all that the features
// are for, and use every verb. Catches a component that lacks a right, and one that grants what nobody uses.
func TestRightsOfEachFeature(t *testing.T) {
	t.Parallel()
	theStage(t)
	built := buildOverlays(t, map[string]overlay{
		"plain": rightsOverlay("deploy/pair"),
		"all":   rightsOverlay("deploy/pair", "topology", "modify", "secrets", "capacity", "cross-namespace", "namespace-labels"),
	})
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		i := install(t, "rights-plain", in("rights-plain", built["plain"]))
		w := begin(t, i.setup(setup{withoutTopology: true, driver: plain}))
		i.wholeLife(w, w.class("class"), w.snapshotClass("delete"))
		i.checkUse(w, i.account)
		for p, want := range map[*stage.Process]string{w.provisioner: "deploy/provisioner/rbac.yaml", w.snapshotter: "deploy/snapshotter/rbac.yaml"} {
			want = "get on secrets, needed for the secrets that classes name; " + want + " grants it"
			if got := missing(t, p); len(got) != 1 || got[0] != want {
				t.Errorf("%s lacks %q", p.Name, got)
			}
		}
	})
	t.Run("all", func(t *testing.T) { t.Parallel(); everyFeature(t, built["all"]) })
}

// plain is a driver for which the bases do.
var plain = []string{"--capabilities=-MODIFY_VOLUME"}

// liveReads are needed when a content has come or gone faster than any cache shows, which does not happen in each run.
var liveReads = []verb{snapshotGroup + " volumesnapshotcontents get", snapshotGroup + " volumesnapshots get"}

// TestRightsOfBinders is the same for installations with a program that binds everything. It is alone, since that one would take
// part in what other tests watch closely.
func TestRightsOfBinders(t *testing.T) {
	theStage(t)
	built := buildOverlays(t, map[string]overlay{"bind-all": rightsOverlay("deploy/pair", "bind-all"), "node": rightsOverlay("deploy/node")})
	t.Run("bind-all", func(t *testing.T) {
		i := install(t, "rights-bind-all", in("rights-bind-all", built["bind-all"]))
		w := begin(t, i.setup(setup{withoutTopology: true, driver: plain}))
		i.startController(w)
		i.wholeLife(w, w.class("class"), w.snapshotClass("delete"))
		i.checkUse(w, i.accountOf("snapshot-controller"), liveReads...)
		i.checkUse(w, i.account)
	})
	t.Run("node", func(t *testing.T) {
		i := install(t, "rights-node", in("rights-node", built["node"]))
		w := begin(t, i.setup(setup{
			driver: plain, provisioner: []string{"--node-deployment-base-delay=1s"},
			cast: func(_ *world, roles *stage.Roles) {
				roles.Node, roles.Topology = "worker-1", map[string]map[string]string{"worker-1": {zoneKey: "z1"}}
			},
		}))
		i.startController(w)
		i.wholeLife(w, w.class("class"), w.snapshotClass("delete"))
		i.checkUse(w, i.accountOf("snapshot-controller"), liveReads...)
		i.checkUse(w, i.account)
	})
}

// everyFeature is a driver that can do all, and classes that name secrets and mutable parameters.
func everyFeature(t *testing.T, manifest []byte) {
	i := install(t, "rights-all", in("rights-all", manifest))
	w := begin(t, i.setup(setup{
		driver: []string{"--require-secrets=token=a"}, cast: func(_ *world, roles *stage.Roles) { roles.Capacity = true },
	}))
	w.secret("access", map[string]string{"token": "a"})
	class := w.class("class", parameters(map[string]string{
		"csi.storage.k8s.io/provisioner-secret-name": "access", "csi.storage.k8s.io/provisioner-secret-namespace": w.ns,
	}))
	w.class("measured", waiting)
	w.mutable("gold")
	i.wholeLife(w, class, w.snapshotClass("delete", func(c *snapv1.VolumeSnapshotClass) {
		c.Parameters = map[string]string{"csi.storage.k8s.io/snapshotter-secret-name": "access", "csi.storage.k8s.io/snapshotter-secret-namespace": w.ns}
	}), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = ptr.To(w.ns + "-gold") })
	w.await("the capacity belongs to the Deployment", func() (bool, string) {
		objects, err := w.kube.StorageV1().CSIStorageCapacities(i.namespace).List(w.ctx, metav1.ListOptions{})
		if err != nil {
			return unreadable(err)
		}
		return len(objects.Items) == 2 && !slices.ContainsFunc(objects.Items, func(o storagev1.CSIStorageCapacity) bool {
			return len(o.OwnerReferences) != 1 || o.OwnerReferences[0].Kind != "Deployment"
		}), text(objects.Items)
	})
	// A class goes, and with it its capacity.
	w.mustNot(w.kube.StorageV1().StorageClasses().Delete(w.ctx, w.ns+"-measured", metav1.DeleteOptions{}))
	i.checkUse(w, i.account)
	for _, p := range []*stage.Process{w.provisioner, w.snapshotter} {
		if got := missing(t, p); len(got) > 0 {
			t.Errorf("%s lacks %q", p.Name, got)
		}
	}
}

// mutable makes a VolumeAttributesClass, which goes with the test.
func (w *world) mutable(name string) {
	w.Helper()
	classes := w.kube.StorageV1().VolumeAttributesClasses()
	w.must(classes.Create(w.ctx, &storagev1.VolumeAttributesClass{ObjectMeta: w.cluster(name), DriverName: w.driver, Parameters: map[string]string{"tier": "gold"}}, metav1.CreateOptions{}))
	w.Cleanup(func() { w.mustNot(classes.Delete(w.ctx, w.ns+"-"+name, metav1.DeleteOptions{})) })
}

// wholeLife makes a volume, cuts it, restores, clones, and deletes all of it again.
func (i *installation) wholeLife(w *world, class, snapshotClass string, edit ...func(*corev1.PersistentVolumeClaim)) {
	w.Helper()
	w.claim("data", class, edit...)
	w.bound("data")
	snap := w.snapshot("snap", "data", snapshotClass)
	w.ready("snap")
	w.claim("restored", class, append(slices.Clone(edit), fromSnapshot("snap"))...)
	w.bound("restored")
	w.claim("cloned", class, append(slices.Clone(edit), fromClaim("data"))...)
	w.bound("cloned")
	w.deleteSnapshot("snap")
	w.contentGone("snapcontent-" + string(snap.UID))
	i.estrange(w, w.bound("cloned"))
	for _, name := range []string{"data", "restored", "cloned"} {
		w.deleteClaim(name)
	}
	w.await("all volumes are gone", func() (bool, string) {
		volumes, err := w.volumes()
		if err != nil {
			return unreadable(err)
		}
		return len(volumes) == 0, text(volumes)
	})
}

// estrange writes another claim's UID into a volume, as a restore from a backup may. It is Released by that, and only the claim
// itself, read live, tells that its data is needed.
func (i *installation) estrange(w *world, volume *corev1.PersistentVolume) {
	w.Helper()
	patch := []byte(`{"spec":{"claimRef":{"uid":"00000000-0000-0000-0000-000000000000"}}}`)
	w.must(w.kube.CoreV1().PersistentVolumes().Patch(w.ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{}))
	w.await("the claim was read before its data could be deleted", func() (bool, string) {
		return i.seen(i.account).used["core persistentvolumeclaims get"], "it was not"
	})
	if calls := w.calls("DeleteVolume"); len(calls) > 0 {
		w.Errorf("DeleteVolume was called for a claim that lives: %s", calls[0].Request)
	}
}
