// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// slow is a driver that takes its time, in the time of the bubble.
type slow struct {
	*kit.Driver
	takes time.Duration
}

func (s slow) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	time.Sleep(s.takes)
	return s.Driver.CreateVolume(ctx, request)
}

// far is an API server some way off.
type far struct{ *kit.API }

func (f far) Patch(ctx context.Context, r kube.Resource, key kube.Key, body kube.PatchBody, into kube.Object) error {
	time.Sleep(5 * time.Millisecond)
	return f.API.Patch(ctx, r, key, body, into)
}

func (f far) Create(ctx context.Context, r kube.Resource, obj, into kube.Object) error {
	time.Sleep(5 * time.Millisecond)
	return f.API.Create(ctx, r, obj, into)
}

// live is the room with its real queue and caches, in a bubble; end stops it and gives what Run returned.
func live(t *testing.T, takes time.Duration) (api *kit.API, room *claim.Controller, end func() error) {
	log := &kit.Log{}
	api = kit.NewAPI(clock.RealClock{}, log)
	client := far{api}
	claims := kube.NewInformer(client, kube.InformerOptions[*corev1.PersistentVolumeClaim]{Indexes: kube.ClaimIndexes()})
	volumes := kube.NewInformer(client, kube.InformerOptions[*corev1.PersistentVolume]{Indexes: kube.VolumeIndexes()})
	classes := kube.NewInformer(client, kube.InformerOptions[*storagev1.StorageClass]{})
	driver := kit.NewDriver(clock.RealClock{}, log)
	room = claim.New(*claim.NewOptions(), claim.Deps{
		Client: client, Driver: slow{driver, takes}, DriverName: kit.DriverName, Identity: "id-1", Capabilities: can(),
		Recorder: kit.NewRecorder(log), Clock: clock.RealClock{}, Claims: claims.Store, Volumes: volumes.Store, Classes: classes.Store,
		Workers: 100, RetryStart: time.Second, RetryMax: 5 * time.Minute,
		Record: &claim.Recording{Namespace: recordKey.Namespace, Name: "driver-attempts", Holder: "me", Linger: claim.RecordLinger},
	})
	room.Watch(claim.Watched{Claims: claims, Classes: classes})
	api.Put(kit.Class(kit.ClassName))
	watching, stop := context.WithCancel(t.Context())
	for _, run := range []func(context.Context){claims.Run, volumes.Run, classes.Run} {
		go run(watching)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	time.Sleep(time.Second)
	go func() { ended <- room.Run(ctx) }()
	return api, room, func() error {
		cancel()
		err := <-ended
		stop()
		return err
	}
}

func recordWrites(api *kit.API) (n int) {
	for _, r := range api.Requests() {
		if r.Resource == "configmaps" && r.Verb != "get" {
			n++
		}
	}
	return n
}

// TestRecordCost: a hundred claims at once cost at most 0.2 writes each for the record, coming and going, with a fast driver and with
// a slow one; one alone costs two.
func TestRecordCost(t *testing.T) {
	for _, row := range []struct {
		takes, every time.Duration
		claims       int
	}{{0, 0, 100}, {time.Second, 0, 100}, {50 * time.Millisecond, 0, 1000}, {time.Second, 5 * time.Millisecond, 1000}} {
		t.Run(fmt.Sprintf("%d claims every %v, a driver that takes %v", row.claims, row.every, row.takes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, _, end := live(t, row.takes)
				time.Sleep(time.Second)
				before := recordWrites(api)
				for i := range row.claims {
					api.Put(kit.Claim(fmt.Sprintf("data-%d", i)))
					time.Sleep(row.every)
				}
				time.Sleep(time.Minute)
				if n := len(kit.All[*corev1.PersistentVolume](api)); n != row.claims {
					t.Fatalf("%d volumes", n)
				}
				each := float64(recordWrites(api)-before) / float64(row.claims)
				t.Logf("%.3f writes for each claim", each)
				if each > 0.2 {
					t.Errorf("%.3f writes for each claim", each)
				}
				before = recordWrites(api)
				api.Put(kit.Claim("alone"))
				time.Sleep(time.Minute)
				if n := recordWrites(api) - before; n != 2 {
					t.Errorf("a claim alone costs %d writes", n)
				}
				if err := end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestRunEnds: a process that has lost the record ends its work and says why; one that is told to end does so even while the record
// cannot be read.
func TestRunEnds(t *testing.T) {
	t.Run("taken over", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api, _, end := live(t, 0)
			time.Sleep(time.Second)
			kit.Edit(api, recordKey, func(c *corev1.ConfigMap) { c.Data["epoch"] = "9 other" })
			api.Put(kit.Claim("data"))
			time.Sleep(5 * time.Second)
			if len(kit.All[*corev1.PersistentVolume](api)) != 0 {
				t.Error("a volume was made")
			}
			if err := end(); !errors.Is(err, attempt.ErrForeign) {
				t.Error(err)
			}
		})
	})
	t.Run("never begun", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api, room, end := live(t, 0)
			_ = room
			api.Put(kit.Claim("data"))
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	})
}
