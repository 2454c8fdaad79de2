// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func TestImportOfADriverThatCannotBeAsked(t *testing.T) {
	h, _ := start(t, func(d *Deps) { d.Capabilities = capability.Of(nil) })
	c := kit.NamedContent("old")
	h.Put(c)
	h.Settle()
	if got := now(h, c).Status; got == nil || !*got.ReadyToUse || got.RestoreSize != nil || len(h.Driver.Calls()) > 0 {
		t.Errorf("S46 %+v", got)
	}
}

func TestImportThatTheDriverDoesNotShow(t *testing.T) {
	h, _ := start(t, func(d *Deps) { d.Capabilities = capability.Of(nil, csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS) })
	c := kit.NamedContent("old")
	h.Put(c)
	h.Horizon = 3 * time.Second
	h.Settle()
	if got := now(h, c).Status; got == nil || *got.ReadyToUse || !strings.Contains(*got.Error.Message, "can not find snapshot for snapshotID handle-of-old") {
		t.Fatalf("S47 %+v", got)
	}
	h.Driver.PutSnapshot("old", kit.VolumeHandle("pv"), 1<<30)
	h.Driver.PutSnapshot("decoy", kit.VolumeHandle("pv"), 1<<30)
	h.Horizon = time.Minute
	h.Settle()
	if got := now(h, c).Status; !*got.ReadyToUse || got.Error != nil || *got.SnapshotHandle != "handle-of-old" {
		t.Errorf("S47 appears later: %+v", got)
	}
}

func TestImportWaitsForItsClassAndItsSecret(t *testing.T) {
	h, _ := start(t)
	h.Driver.PutSnapshot("old", kit.VolumeHandle("pv"), 1<<30)
	h.Driver.Secrets = map[string]string{"k": "v"}
	c := kit.NamedContent("old", func(c *kube.Content) { c.Spec.VolumeSnapshotClassName = kit.Ptr("later") })
	h.Put(c)
	h.Horizon = time.Second
	h.Settle()
	if got := now(h, c).Status; got == nil || !strings.Contains(*got.Error.Message, `"later" not found`) || len(h.Driver.Calls()) > 0 {
		t.Fatalf("S48 %+v", got)
	}
	h.Put(kit.SnapshotClass("later", func(c *snapv1.VolumeSnapshotClass) {
		c.Parameters = map[string]string{wellknown.ParamSnapshotterListSecretName: "s", wellknown.ParamSnapshotterListSecretNamespace: kit.Namespace}
	}))
	h.Settle()
	if got := now(h, c).Status; !strings.Contains(*got.Error.Message, "failed to get credentials") || len(h.Driver.Calls()) > 0 {
		t.Fatalf("S48 %+v", got)
	}
	h.Put(kit.Secret("s", map[string]string{"k": "v"}))
	h.Horizon = time.Minute
	h.Settle()
	if got := now(h, c).Status; !*got.ReadyToUse || got.Error != nil {
		t.Errorf("S48 %+v", got)
	}
}

func TestContentThatMeansNothing(t *testing.T) {
	h, _ := start(t)
	bound(h, func(c *kube.Content) { c.Spec.Source = snapv1.VolumeSnapshotContentSource{} })
	h.Settle()
	events := h.Recorder.Events()
	if len(events) != 1 || events[0] != "Warning ContentValidationError Exactly one of VolumeHandle and SnapshotHandle should be specified; "+
		"make the content anew, with exactly one of spec.source.volumeHandle and spec.source.snapshotHandle" ||
		len(h.Driver.Calls()) > 0 {
		t.Errorf("S36 %v", events)
	}
}

func TestContentThatVanishesUnderTheWork(t *testing.T) {
	for _, resource := range []string{"volumesnapshotcontents", "volumesnapshotcontents/status"} {
		h, c := start(t)
		content := bound(h)
		h.API.Script(kit.Rule{Verb: "patch", Resource: resource, Times: 1, Meanwhile: func() {
			kit.Edit(h.API, kube.KeyOf(content), func(c *kube.Content) { c.Finalizers = nil; kit.Deleted(c) })
		}})
		h.Settle()
		if len(h.Errors()) > 0 || len(c.attempts) > 0 {
			t.Errorf("%s: errors %v, remembered %v", resource, h.Errors(), c.attempts)
		}
	}
}

func TestErrorsOfTheAPIAreTriedAgain(t *testing.T) {
	h, _ := start(t)
	c := bound(h)
	h.API.Fail("patch", "volumesnapshotcontents", apierrors.NewInternalError(errors.New("etcd")), 2)
	h.API.Conflict("volumesnapshotcontents/status", 1)
	h.Settle()
	deleteBoth(h, c)
	h.API.Fail("get", "volumesnapshotcontents", apierrors.NewServerTimeout(schema.GroupResource{}, "get", 1), 1)
	h.API.Conflict("volumesnapshotcontents", 2)
	h.Settle()
	if len(kit.All[*kube.Content](h.API)) > 0 || len(h.Driver.Inventory()) != 1 || len(h.Driver.Calls("DeleteSnapshot")) != 1 {
		t.Errorf("left: %v; deletions %v", h.State(), h.Driver.Calls("DeleteSnapshot"))
	}
}

func TestRunsOnARealQueue(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.SnapshotClass(kit.SnapshotClassName))
	h.Driver.PutVolume("pv", 1<<30)
	contents := kube.NewInformer(h.API, kube.InformerOptions[*kube.Content]{Indexes: kube.ContentIndexes()})
	classes := kube.NewInformer(h.API, kube.InformerOptions[*snapv1.VolumeSnapshotClass]{})
	snapshots := kube.NewInformer(h.API, kube.InformerOptions[*snapv1.VolumeSnapshot]{Indexes: kube.SnapshotIndexes()})
	c := live(h, func(d *Deps) { d.Contents, d.Classes, d.Snapshots = contents.Store, classes.Store, snapshots.Store })
	c.Watch(contents, classes, snapshots)
	called := make(chan struct{})
	h.Driver.Next("CreateSnapshot", kit.Reply{Meanwhile: func() { close(called) }})

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go classes.Run(ctx)
	go snapshots.Run(ctx)
	go contents.Run(ctx)
	go func() { ended <- c.Run(ctx) }()
	bound(h)
	<-called
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := c.Reconcile(t.Context(), reconcile.Key{Name: "none"}); err != nil {
		t.Error(err)
	}
}
