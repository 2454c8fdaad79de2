// SPDX-License-Identifier: Apache-2.0

package e2e

import (
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
		"all":   rightsOverlay("deploy/pair", everyComponent...),
	})
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		i := install(t, "rights-plain", in("rights-plain", built["plain"]))
		w := begin(t, i.setup(setup{withoutTopology: true, driver: plain}))
		i.wholeLife(w, life{class: w.class("class"), snapshotClass: w.snapshotClass("delete"), edit: asItIs})
		i.checkUse(w, i.account)
		for p, want := range map[*stage.Process]string{w.provisioner: "deploy/provisioner/rbac.yaml", w.snapshotter: "deploy/snapshotter/rbac.yaml"} {
			want = "get on secrets, needed for the secrets that classes name; add deploy/components/secrets to deploy/pair or deploy/node, or bind a role such as that in " +
				want + " to system:serviceaccount:" + i.namespace + ":" + i.account
			if got := missing(t, p); len(got) != 1 || got[0] != want {
				t.Errorf("%s lacks %q", p.Name, got)
			}
		}
	})
	t.Run("all", func(t *testing.T) { t.Parallel(); everyFeature(t, built["all"]) })
}

// everyComponent are those that go together, and only serve the sidecars' own work.
var everyComponent = []string{"topology", "attach", "modify", "secrets", "capacity", "cross-namespace", "namespace-labels"}

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
		i.wholeLife(w, life{class: w.class("class"), snapshotClass: w.snapshotClass("delete"), edit: asItIs})
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
		i.wholeLife(w, life{class: w.class("class"), snapshotClass: w.snapshotClass("delete"), edit: asItIs})
		i.checkUse(w, i.accountOf("snapshot-controller"), liveReads...)
		i.checkUse(w, i.account)
	})
}

// everyFeature is a driver that can do all, and classes that name secrets and mutable parameters.
func everyFeature(t *testing.T, manifest []byte) {
	i := install(t, "rights-all", in("rights-all", manifest))
	w, life := i.demanding()
	life.attached = true
	i.wholeLife(w, life)
	w.await("the capacity belongs to the Deployment", func() (bool, string) {
		objects, err := w.kube.StorageV1().CSIStorageCapacities(i.namespace).List(w.ctx, metav1.ListOptions{})
		if err != nil {
			return unreadable(err)
		}
		return len(objects.Items) == 2 && !slices.ContainsFunc(objects.Items, func(o storagev1.CSIStorageCapacity) bool {
			return len(o.OwnerReferences) != 1 || o.OwnerReferences[0].Kind != "Deployment"
		}), text(objects.Items)
	})
	i.unmeasure(w)
	w.await("the capacity of the class that went is gone", func() (bool, string) { return i.measured(w) == 0, "it is still there" })
	// A kind that the cluster does not have is listed in vain, and not watched; another test brings this one.
	i.checkUse(w, i.account, "gateway.networking.k8s.io referencegrants watch")
	for _, p := range []*stage.Process{w.provisioner, w.snapshotter} {
		if got := missing(t, p); len(got) > 0 {
			t.Errorf("%s lacks %q", p.Name, got)
		}
	}
}

// life is what its objects are made with.
type life struct {
	class, snapshotClass string
	edit                 func(*corev1.PersistentVolumeClaim)
	// attached volumes are not deleted before they are detached.
	attached bool
}

// demanding is a world in which every feature of the pair is wanted.
func (i *installation) demanding() (*world, life) {
	i.Helper()
	s := i.setup(setup{
		driver: []string{"--require-secrets=token=a"}, cast: func(_ *world, roles *stage.Roles) { roles.Capacity = true },
	})
	provisioner, snapshotter := s.provisioner, s.snapshotter
	s.withoutSidecars = true
	w := begin(i.T, s)
	var err error
	w.provisioner, err = w.cast.StartSidecar(stage.Provisioner, append(provisioner, w.startAttaching())...)
	w.mustNot(err)
	w.snapshotter, err = w.cast.StartSidecar(stage.Snapshotter, snapshotter...)
	w.mustNot(err)
	w.secret("access", map[string]string{"token": "a"})
	w.class("measured", waiting)
	w.mutable("gold")
	return w, life{
		class: w.class("class", parameters(map[string]string{
			"csi.storage.k8s.io/provisioner-secret-name": "access", "csi.storage.k8s.io/provisioner-secret-namespace": w.ns,
		})),
		snapshotClass: w.snapshotClass("delete", func(c *snapv1.VolumeSnapshotClass) {
			c.Parameters = map[string]string{"csi.storage.k8s.io/snapshotter-secret-name": "access", "csi.storage.k8s.io/snapshotter-secret-namespace": w.ns}
		}),
		edit: func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = ptr.To(w.ns + "-gold") },
	}
}

// unmeasure takes a class away, and with it goes its capacity.
func (i *installation) unmeasure(w *world) {
	w.Helper()
	w.mustNot(w.kube.StorageV1().StorageClasses().Delete(w.ctx, w.ns+"-measured", metav1.DeleteOptions{}))
}

// mutable makes a VolumeAttributesClass, which goes with the test.
func (w *world) mutable(name string) {
	w.Helper()
	classes := w.kube.StorageV1().VolumeAttributesClasses()
	w.must(classes.Create(w.ctx, &storagev1.VolumeAttributesClass{ObjectMeta: w.cluster(name), DriverName: w.driver, Parameters: map[string]string{"tier": "gold"}}, metav1.CreateOptions{}))
	w.Cleanup(func() { w.mustNot(classes.Delete(w.ctx, w.ns+"-"+name, metav1.DeleteOptions{})) })
}

func asItIs(*corev1.PersistentVolumeClaim) {}

// wholeLife makes a volume, cuts it, restores, clones, and deletes all of it again.
func (i *installation) wholeLife(w *world, l life) {
	w.Helper()
	w.claim("data", l.class, l.edit)
	data := w.bound("data")
	snap := w.snapshot("snap", "data", l.snapshotClass)
	w.ready("snap")
	w.claim("restored", l.class, l.edit, fromSnapshot("snap"))
	w.bound("restored")
	w.claim("cloned", l.class, l.edit, fromClaim("data"))
	w.bound("cloned")
	w.deleteSnapshot("snap")
	w.contentGone("snapcontent-" + string(snap.UID))
	i.estrange(w, w.bound("cloned"))
	detach := func() {}
	if l.attached {
		detach = w.attach(data.Name)
	}
	for _, name := range []string{"data", "restored", "cloned"} {
		w.deleteClaim(name)
	}
	if l.attached {
		w.told(data.Name, "VolumeFailedDelete", "is still attached to node worker-1")
	}
	detach()
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
	i.makeStrange(w, volume)
	w.await("the claim was read before its data could be deleted", func() (bool, string) {
		return i.seen(i.account).used["core persistentvolumeclaims get"], "it was not"
	})
	if calls := w.calls("DeleteVolume"); len(calls) > 0 {
		w.Errorf("DeleteVolume was called for a claim that lives: %s", calls[0].Request)
	}
}

func (i *installation) makeStrange(w *world, volume *corev1.PersistentVolume) {
	w.Helper()
	patch := []byte(`{"spec":{"claimRef":{"uid":"00000000-0000-0000-0000-000000000000"}}}`)
	w.must(w.kube.CoreV1().PersistentVolumes().Patch(w.ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{}))
}
