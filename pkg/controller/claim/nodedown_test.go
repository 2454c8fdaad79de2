// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// sharing is the process of a node whose storage other nodes reach as well.
func sharing(h *kit.Harness, node string) {
	segment := topology.SegmentOf(map[string]string{"zone": "a"})
	index := topology.NewIndex()
	index.SetNode(node, segment.Labels())
	index.SetDriverKeys(node, []string{"zone"})
	h.Driver.Topology = func(*csi.CreateVolumeRequest) []*csi.Topology {
		return []*csi.Topology{{Segments: map[string]string{"zone": "a"}}}
	}
	startRecordedOn(h, node, index, segment)
}

func startRecordedOn(h *kit.Harness, node string, index *topology.Index, segment topology.Segment) *claim.Controller {
	h.Stores.OfNode = true
	var local claim.Local
	c := start(h, func(o *claim.Options, d *claim.Deps) {
		o.NodeDeployment = true
		local = o.Serving(node, segment)
		d.Surveyor, d.CountNodes = h.Driver, claim.CountNodes(h.API)
		d.Identity, d.Capabilities, d.Topology, d.Local = "1-2-"+kit.DriverName+"-"+node, localCapabilities(), index, local
		d.Record = &claim.Recording{Namespace: "home", Name: claim.RecordName(kit.DriverName, node), Holder: node}
	})
	keys, err := c.Begin(h.Ctx)
	if err != nil {
		h.T.Fatal(err)
	}
	for _, key := range keys {
		h.Enqueue("claim", key)
	}
	deleter := volume.New(volume.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: localCapabilities(), Recorder: h.Recorder, Clock: h.Clock,
		Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Claims: h.Stores.Claims, RetryStart: h.RetryStart, RetryMax: h.RetryMax,
		Settle: c.Settle, Local: local, Patience: time.Minute,
	})
	h.Add(kit.Room{Name: "volume", Reconcile: deleter.Reconcile, Keys: kit.On(deleter.KeysOfVolume)})
	return c
}

// The node that made a volume is killed before the entry is off, and stays down. Another node, which reaches the volume too, sees to its
// PersistentVolume, which somebody keeps. Then the first node is back. Catches one that goes on with what is on its record, and deletes what was kept.
func TestKeptWhileItsNodeWasDown(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.Class(kit.ClassName), kit.Claim("data", kit.OnNode("n1")))
	h.Driver.Capabilities = localCapabilities()
	h.Play(kit.Binder(h.API))
	var mend func()
	h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: func() {
		mend = h.API.Script(kit.Rule{Verb: "patch", Resource: "configmaps", Err: apierrors.NewInternalError(fmt.Errorf("etcd"))})
	}})
	sharing(h, "n1")
	h.Horizon = 0
	h.Settle()
	h.Restart() // n1 is killed right after it wrote the PersistentVolume
	mend()
	sharing(h, "n2")
	pv := kube.Key{Name: name}
	kit.Edit(h.API, pv, func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
	h.Horizon = 10 * time.Minute
	h.Settle()
	kit.Remove[*corev1.PersistentVolume](h.API, pv)
	h.Settle()
	if _, stays := kit.Read[*corev1.PersistentVolume](h.API, pv); stays {
		t.Error("it stays")
	}
	h.Restart()
	sharing(h, "n1")
	h.Horizon = time.Hour
	h.Settle()
	if left := h.Driver.Inventory(); len(left) != 1 || len(h.Driver.Calls("DeleteVolume")) != 0 {
		t.Errorf("the data that was kept is gone: left %v\n%s", left, strings.Join(effects(h), "\n"))
	}
}
