// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/controller/content"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volumesnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// lost names a secret that nobody has made.
func lost(c *storagev1.StorageClass) {
	c.Parameters = map[string]string{wellknown.ParamSecretName: "lost", wellknown.ParamSecretNamespace: kit.Namespace}
}

// TestMissingSecrets: whoever says that nothing is in the way, while the sidecar waits for a secret, sends the reader
// to look elsewhere. The words are those of the event.
func TestMissingSecrets(t *testing.T) {
	t.Run("of a new volume", func(t *testing.T) {
		h := kit.New(t)
		h.Put(kit.Claim("data"), kit.Class(kit.ClassName, lost))
		m := ofClaim("Reject", `error getting secret lost in namespace default: secrets "lost" not found`,
			`StorageClass "fast" names it in its parameters csi.storage.k8s.io/secret-name and csi.storage.k8s.io/secret-namespace: create that secret`).
			check(t, explainClaim(t, h, askedDriver(flat())))
		runClaims(h, flat())
		sameWords(t, h, m.Event)
	})
	t.Run("of a volume that goes", func(t *testing.T) {
		h := kit.New(t)
		c := kit.Claim("data", kit.BoundTo("pv"))
		h.Put(kit.Volume("pv", kit.ClaimedBy(c), kit.Released, func(v *corev1.PersistentVolume) {
			kube.AddFinalizer(v, wellknown.FinalizerVolume)
			kube.SetAnnotation(v, wellknown.AnnDeletionSecretName, "lost")
			kube.SetAnnotation(v, wellknown.AnnDeletionSecretNamespace, kit.Namespace)
		}))
		report := readOnly(t, h, func() (*Report, error) { return Volume(h.Ctx, setting(h, askedDriver(flat())), Provisioner{}, "pv") })
		m := expectation{provisioner, kindVolume, "Reject", `secrets "lost" not found`, "annotations " + wellknown.AnnDeletionSecretName}.check(t, report)
		runVolumes(h, flat())
		sameWords(t, h, m.Event)
	})
	t.Run("of a snapshot", func(t *testing.T) {
		h := kit.New(t)
		h.Put(with(sourceOf(kit.DriverName), kit.Snapshot("monday", "data"), kit.SnapshotClass(kit.SnapshotClassName, lostOfSnapshots))...)
		ofSnapshot("CreateContent", `and then the driver is not asked: error getting secret lost in namespace default`,
			"create secret default/lost, which VolumeSnapshotClass snap names in its parameters").
			check(t, explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Own))
		runBinding(h)
		h.Log.Clear()
		report := explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Own)
		m := ofContent("Record", `secrets \"lost\" not found`, "VolumeSnapshotClass snap names it in its parameters csi.storage.k8s.io/snapshotter-secret-name and").check(t, report)
		name := wellknown.ContentName(string(kit.Snapshot("monday", "data").UID))
		runContents(h, name)
		sameWords(t, h, m.Event)
	})
	t.Run("that the reader may not see", func(t *testing.T) {
		h := kit.New(t)
		h.Put(kit.Claim("data"), kit.Class(kit.ClassName, lost))
		h.API.Fail("get", "secrets", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "lost", nil), 1)
		m := ofClaim("Create", "nothing is in the way", "").check(t, explainClaim(t, h, askedDriver(flat())))
		if len(m.Doubts) != 1 || m.Doubts[0] != "reading secrets default/lost: not allowed to you" {
			t.Errorf("an unknown secret is taken for certain: %q", m.Doubts)
		}
	})
}

func lostOfSnapshots(c *snapv1.VolumeSnapshotClass) {
	c.Parameters = map[string]string{wellknown.ParamSnapshotterSecretName: "lost", wellknown.ParamSnapshotterSecretNamespace: kit.Namespace}
}

// runContents lets the room of contents take one of them a step.
func runContents(h *kit.Harness, name string) {
	room := content.New(*content.NewOptions(), content.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: flat(), Recorder: h.Recorder, Clock: h.Clock,
		Contents: h.Stores.Contents, Classes: h.Stores.SnapshotClasses, Snapshots: h.Stores.Snapshots, RetryStart: time.Second, RetryMax: time.Minute,
	})
	_, _ = room.Reconcile(h.Ctx, reconcile.Key{Name: name}) // what it tells is of interest, not how it ends
}

// TestVolumesAndContentsAlone: a volume outlives its claim and a content its snapshot, and then nobody but they can
// say why they stay.
func TestVolumesAndContentsAlone(t *testing.T) {
	h := kit.New(t)
	name := wellknown.ContentName(string(kit.Snapshot("monday", "data").UID))
	c := kit.With(kit.Content(kit.Snapshot("monday", "data"), "vol", kit.Taken("snap-1"), func(c *kube.Content) { c.Name = name }),
		kit.Finalizers(wellknown.FinalizerContent), kit.Deleted)
	h.Put(c, kit.SnapshotClass(kit.SnapshotClassName), kit.CSINode("n1", zone))
	report := readOnly(t, h, func() (*Report, error) { return Content(h.Ctx, setting(h, Driver{}), Snapshotter{}, name) })
	ofContent("Delete", "Asks the driver to delete snapshot snap-1", "").check(t, report)
	text := written(t, report, "text")
	for _, says := range []string{"VolumeSnapshot default/monday, which does not exist (any more)", wellknown.FinalizerContent, "No lease says that a snapshotter works"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), says) {
			t.Errorf("does not say %q:\n%s", says, text)
		}
	}
	if _, err := Content(h.Ctx, setting(h, Driver{}), Snapshotter{}, "nope"); err == nil {
		t.Error("a content that does not exist was explained")
	}
	if _, err := Volume(h.Ctx, setting(h, Driver{}), Provisioner{}, "nope"); err == nil {
		t.Error("a volume that does not exist was explained")
	}
}
