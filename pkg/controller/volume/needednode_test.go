// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestLostClaimOfAnotherNode: a volume that several nodes reach counts as released while its claim is there, as after a restore of
// objects. Catches a process that takes its cache, which lacks the claims of other nodes, for the cluster.
func TestLostClaimOfAnotherNode(t *testing.T) {
	h := world(t, released())
	kept := provision.Config{Driver: kit.DriverName, Local: provision.Local{Node: "n1"}}
	owner := kit.Claim("gone", kit.BoundTo("v"), kit.OnNode("n2"))
	owner.UID = "restored"
	if kept.KeepsClaim(owner) {
		t.Fatal("it is in the cache")
	}
	h.Put(owner)
	c := volume.New(volume.Deps{
		Client: h.API, Driver: h.Driver, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock,
		Local: kept.Local, Patience: time.Minute, Claims: kube.NewStore(kube.ClaimIndexes()),
		Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Attachments: h.Stores.Attachments, RetryStart: h.RetryStart, RetryMax: h.RetryMax,
	})
	h.Add(kit.Room{Name: "volume", Reconcile: c.Reconcile, Keys: kit.On(c.KeysOfVolume)})
	h.API.Script(kit.Rule{Verb: "get", Resource: "persistentvolumeclaims", Err: serverError(), Times: 1})
	h.Horizon = 2 * time.Minute
	h.Settle()
	if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 || !strings.Contains(strings.Join(h.Log.Lines(), "\n"), "claim default/gone exists") {
		t.Errorf("%v\n%s", calls, h.Trace())
	}
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(owner))
	h.Horizon = 30 * time.Minute
	h.Settle()
	if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 1 {
		t.Errorf("the claim is gone: %v\n%s", calls, h.Trace())
	}
}
