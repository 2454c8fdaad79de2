// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/proxy"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// recorded is what the first object of the record holds besides its epoch.
func (w *world) recorded() (map[string]string, error) {
	object, err := w.kube.CoreV1().ConfigMaps(stage.Namespace).Get(w.ctx, w.driver+"-attempts-0", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	delete(object.Data, "epoch")
	return object.Data, nil
}

// begun waits until the provisioner has taken over the record.
func (w *world) begun() {
	w.Helper()
	w.await("the record has begun", func() (bool, string) {
		if _, err := w.recorded(); err != nil {
			return unreadable(err)
		}
		return true, ""
	})
}

// point is a moment in the making of a volume, at which it is held until somebody lets it go on.
type point struct {
	name string
	hold func(w *world, api *proxy.API) (await, release func())
	// called tells whether the driver hears of the volume at all.
	called bool
}

func atAPI(hang func(*proxy.API) *proxy.Fault) func(*world, *proxy.API) (func(), func()) {
	return func(w *world, api *proxy.API) (func(), func()) {
		fault := hang(api)
		return func() { w.mustNot(fault.AwaitHits(w.ctx, 1)) }, fault.Release
	}
}

func atDriver(m moment) func(*world, *proxy.API) (func(), func()) {
	return func(w *world, _ *proxy.API) (func(), func()) {
		rule := w.rule(m.hold(w, control.On("CreateVolume").Times(1)))
		return func() { w.awaitCalls("CreateVolume", 1) }, func() { w.release(rule) }
	}
}

var points = []point{
	{"before it is on record", atAPI(func(a *proxy.API) *proxy.Fault {
		return a.Hang(proxy.Match{Verb: "patch", Resource: "configmaps"}, 1)
	}), false},
	{"before the call", atAPI(func(a *proxy.API) *proxy.Fault {
		return a.HangAfter(proxy.Match{Verb: "patch", Resource: "configmaps"}, 1)
	}), true},
	{"in the call, before its effect", atDriver(moments[0]), true},
	{"in the call, after its effect", atDriver(moments[1]), true},
	{"after the answer", atAPI(func(a *proxy.API) *proxy.Fault {
		return a.Hang(proxy.Match{Verb: "create", Resource: "persistentvolumes"}, 1)
	}), true},
	{"after the PersistentVolume was sent", atAPI(func(a *proxy.API) *proxy.Fault {
		return a.HangAfter(proxy.Match{Verb: "create", Resource: "persistentvolumes"}, 1)
	}), true},
}

// TestClaimDeletedWhileNobodyWorks (B003, PW-14): whenever the provisioner is killed in the making of a volume, and the claim is
// deleted before another one starts, nothing is left at the driver; and a claim whose making never reached the driver is not held
// back, and asks for nothing any more. Catches a provisioner that remembers in memory only what it has begun. Snapshots need no such
// record, since the content with its mark is one: TestDeletedWhileNobodyWorks shows the same of them.
func TestClaimDeletedWhileNobodyWorks(t *testing.T) {
	t.Parallel()
	for _, p := range points {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			api, through := behind(t)
			w := begin(t, setup{withoutSnapshotter: true, provisioner: []string{through, "--retry-interval-start=200ms"}})
			w.repeats = 4
			class := w.class("class")
			w.begun()
			await, release := p.hold(w, api)
			w.claim("data", class)
			await()
			w.provisioner.Kill()
			w.deleteClaim("data")
			w.claimGone("data")
			release()
			w.mustNot(w.provisioner.Start())
			w.await("what was begun is finished and removed", func() (bool, string) {
				entries, err := w.recorded()
				if err != nil {
					return unreadable(err)
				}
				volumes, err := w.volumes()
				if err != nil {
					return unreadable(err)
				}
				inventory := w.inventory()
				begun := !p.called || len(w.calls("DeleteVolume")) > 0
				return begun && len(entries) == 0 && len(volumes) == 0 && len(inventory.Volumes) == 0, text(entries) + text(inventory)
			})
			if !p.called && len(w.calls("CreateVolume")) > 0 {
				t.Error("a volume was asked for that nobody waits for")
			}
			// The next one finds a clean record and works.
			w.claim("next", class)
			w.bound("next")
		})
	}
}

// TestTwoWithoutElection: two provisioners of one driver that know nothing of each other do not work at the same time: the later one
// has the record, and the other says so and stops, without ending. Catches two that undo each other's work.
func TestTwoWithoutElection(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true})
	class := w.class("class")
	w.claim("before", class)
	w.bound("before")
	second, err := w.cast.StartSidecar(stage.Provisioner)
	w.mustNot(err)
	w.await("the second has the record", func() (bool, string) {
		object, err := w.kube.CoreV1().ConfigMaps(stage.Namespace).Get(w.ctx, w.driver+"-attempts-0", metav1.GetOptions{})
		if err != nil {
			return unreadable(err)
		}
		return strings.HasPrefix(object.Data["epoch"], "2 "), object.Data["epoch"]
	})
	w.claim("after", class)
	w.bound("after")
	w.checkNoOverlap()
	w.await("the first has stopped", func() (bool, string) {
		said, err := os.ReadFile(w.provisioner.Log)
		w.mustNot(err)
		return strings.Contains(string(said), "All work was stopped, because another process does it"), w.provisioner.LogTail(3)
	})
	w.deleteClaim("before")
	w.await("the second goes on", func() (bool, string) { return len(w.inventory().Volumes) == 1, text(w.inventory()) })
	second.Terminate()
}

// TestRecordOff: with --attempt-record=false nothing is written and everything else works.
func TestRecordOff(t *testing.T) {
	t.Parallel()
	w := begin(t, setup{withoutSnapshotter: true, withoutTopology: true, provisioner: []string{"--attempt-record=false"}})
	w.claim("data", w.class("class"))
	w.bound("data")
	if _, err := w.recorded(); !apierrors.IsNotFound(err) {
		t.Error("there is a record", err)
	}
}
