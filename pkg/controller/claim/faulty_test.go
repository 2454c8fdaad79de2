// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// faulty is a driver that makes a volume, and whose answer shows a fault of this program, so many times.
type faulty struct {
	*kit.Driver
	times *int
}

func (f faulty) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	volume, err := f.Driver.CreateVolume(ctx, request)
	if *f.times > 0 {
		*f.times--
		panic("a fault of this program")
	}
	return volume, err
}

// TestAFaultWhileTheAnswerIsRead: a look breaks off after the driver has made the volume, the others go on, and the claim is deleted before the
// next look. Catches a process that takes the request for one that was never sent, where the next process would know better.
func TestAFaultWhileTheAnswerIsRead(t *testing.T) {
	for name, ends := range map[string]bool{"the process goes on": false, "the process ends": true} {
		t.Run(name, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			times := 1
			startFaulty(t, h, h.API, faulty{h.Driver, &times})
			h.Horizon = 100 * time.Millisecond
			h.Settle()
			if times != 0 || len(h.Driver.Inventory()) != 1 {
				t.Fatal("the driver has made nothing", h.Driver.Inventory())
			}
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
			if ends {
				h.Restart()
				startFaulty(t, h, h.API, faulty{h.Driver, &times})
			}
			h.Horizon = 3 * time.Hour
			h.Settle()
			// A PersistentVolume would be let go by kube-controller-manager, and take the volume along.
			if kept := h.Driver.Inventory(); len(kept) != 0 && len(kit.All[*corev1.PersistentVolume](h.API)) == 0 {
				t.Errorf("the claim is gone, and the driver keeps %v for nobody; on record: %v\n%s", kept, onRecord(h), h.Trace())
			}
		})
	}
}

// faultyList is a client that shows a fault of this program in a list of PersistentVolumes, so many times.
type faultyList struct {
	kube.Client
	times *int
}

func (f faultyList) List(ctx context.Context, r kube.Resource, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	if *f.times > 0 && r.Plural == "persistentvolumes" {
		*f.times--
		panic("a fault of this program")
	}
	return f.Client.List(ctx, r, namespace, options)
}

// TestAFaultAfterABadAnswer: the driver has made a volume that is too small, the look for its holder breaks off, and the claim goes before the next
// look. Catches a process that does not know any more that there is a volume.
func TestAFaultAfterABadAnswer(t *testing.T) {
	for name, ends := range map[string]bool{"the process goes on": false, "the process ends": true} {
		t.Run(name, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
			times := 1
			startFaulty(t, h, faultyList{h.API, &times}, h.Driver)
			h.Horizon = 100 * time.Millisecond
			h.Settle()
			if times != 0 || len(h.Driver.Inventory()) != 1 {
				t.Fatal("no fault has shown", times, h.Driver.Inventory())
			}
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
			if ends {
				h.Restart()
				startFaulty(t, h, faultyList{h.API, &times}, h.Driver)
			}
			h.Horizon = 3 * time.Hour
			h.Settle()
			if kept := h.Driver.Inventory(); len(kept) != 0 && len(kit.All[*corev1.PersistentVolume](h.API)) == 0 {
				t.Errorf("the claim is gone, and the driver keeps %v for nobody; on record: %v\n%s", kept, onRecord(h), h.Trace())
			}
		})
	}
}

// TestAFaultLeavesNobodyWaiting: who would tell that a call takes long ends with the call, also when that ends by a fault.
func TestAFaultLeavesNobodyWaiting(t *testing.T) {
	h := world(t, kit.Claim("data"))
	times := 20
	startFaulty(t, h, h.API, faulty{h.Driver, &times})
	h.Horizon = 3 * time.Hour
	h.Settle()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:goruntime.Stack(stacks, true)]
	if n := strings.Count(string(stacks), "created by github.com/csi-tandem/csi-tandem/pkg/controller/claim.(*Controller).createVolume"); times != 0 || n != 0 {
		t.Errorf("after %d faults %d still wait", 20-times, n)
	}
}

// startFaulty starts the room with a record, in a queue that outlives a fault.
func startFaulty(t *testing.T, h *kit.Harness, client kube.Client, driver throttle.Caller) {
	t.Helper()
	c := claim.New(*claim.NewOptions(), claim.Deps{
		Client: client, Driver: throttle.New(driver, throttle.Options{Most: 10, Deadline: time.Minute, Clock: h.Clock}),
		DriverName: kit.DriverName, Identity: "id-1", Capabilities: h.Driver.Capabilities, Recorder: h.Recorder, Clock: h.Clock, Topology: h.Topology,
		Claims: h.Stores.Claims, Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, RetryStart: h.RetryStart, RetryMax: h.RetryMax,
		Record: &claim.Recording{Namespace: recordKey.Namespace, Name: "driver-attempts", Holder: fmt.Sprint("process-", h.Log.Effects())},
	})
	keys, err := c.Begin(h.Ctx)
	if err != nil {
		t.Fatal(err)
	}
	look := func(ctx context.Context, key reconcile.Key) (result reconcile.Result, err error) {
		defer func() {
			if fault := recover(); fault != nil {
				result, err = reconcile.Result{}, fmt.Errorf("%v", fault)
			}
		}()
		return c.Reconcile(ctx, key)
	}
	h.Add(kit.Room{Name: "claim", Reconcile: look, Keys: kit.On(c.KeysOfClaim)})
	for _, key := range keys {
		h.Enqueue("claim", key)
	}
}
