// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestOutage (PW-4, T96): with keys that do not coalesce, each poll and each volume adds another chain of
// retries, and calls grow from minute to minute.
func TestOutage(t *testing.T) {
	h := world(t, "a", "b", "c")
	h.MaxTurns = 100000
	room := start(h)
	h.Settle()
	before := objects(h)
	holding(h, nil)
	h.Driver.Next("GetCapacity", kit.Reply{Code: codes.Unavailable, Times: 1 << 30})
	h.Log.Clear()
	var perMinute []int
	for range 5 {
		seen := len(h.Driver.Calls("GetCapacity"))
		for range 60 { // claims fail all the time
			h.Horizon = time.Second
			for node := range 3 {
				room.Failed("fast", fmt.Sprint("n", node+1))
			}
			room.Provisioned(at())
			h.Settle()
			h.Clock.Step(time.Second)
		}
		perMinute = append(perMinute, len(h.Driver.Calls("GetCapacity"))-seen)
	}
	for minute, calls := range perMinute {
		// One, two, four seconds and so on until a poll: eight of each at most, and then one or two in a minute.
		if most := 3 * 8; calls > most || minute > 1 && calls > 3*2 {
			t.Errorf("T96: calls in each minute: %v", perMinute)
		}
	}
	expect(t, h, "B067 T96 old values stay", before...)
	for _, request := range h.API.Requests() {
		if request.Verb == "delete" {
			t.Errorf("T96: %s", request)
		}
	}
}

func TestRecovery(t *testing.T) {
	h := world(t, "a", "b")
	h.Driver.Next("GetCapacity", kit.Reply{Code: codes.Unavailable, Times: 10})
	c := start(h)
	h.Horizon = 3 * c.options.PollInterval
	h.Settle()
	expect(t, h, "T96 recovery publishes all", "fast zone=a 1Ti", "fast zone=b 1Ti")
	if c.memory.failing != 0 {
		t.Errorf("%d questions still count as failing", c.memory.failing)
	}
}

// slow is a driver that never answers about one zone.
type slow struct {
	Driver
	zone           string
	asked, release chan struct{}
}

func (s *slow) GetCapacity(ctx context.Context, request *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	if request.GetAccessibleTopology().GetSegments()["zone"] == s.zone {
		close(s.asked) // a second call while the first is out would panic
		<-s.release
		return nil, context.DeadlineExceeded
	}
	return s.Driver.GetCapacity(ctx, request)
}

// TestHangingSegment (B067): one worker is stuck; with keys of one lane and as many stuck ones as workers all
// others would stop.
func TestHangingSegment(t *testing.T) {
	h := world(t, "a", "b", "c", "d")
	hanging := &slow{Driver: h.Driver, zone: "b", asked: make(chan struct{}), release: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	published := make(chan string, 100)
	client := &telling{Client: h.API, published: published}
	deps := Deps{
		Client: client, Driver: hanging, DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Clock: h.Clock,
		Topology: h.Topology, Classes: h.Stores.StorageClasses, Objects: h.Stores.Capacities, Namespace: kit.Namespace,
		RetryStart: time.Second, RetryMax: time.Minute,
	}
	options := NewOptions()
	options.OwnerLevel, options.Threads = -1, 2
	c := New(*options, deps)
	c.WatchSegments()
	c.memory.setClasses(newTable(c.base, h.Stores.StorageClasses.All()))
	wait.Go(func() { _ = c.Run(ctx) })
	<-hanging.asked
	for range 3 {
		<-published // hangs when the others wait for zone b
	}
	c.Failed("fast", "n2")
	stop()
	close(hanging.release)
	wait.Wait()
	expect(t, h, "B067", "fast zone=a 1Ti", "fast zone=c 1Ti", "fast zone=d 1Ti")
}

type telling struct {
	kube.Client
	published chan<- string
}

func (c *telling) Create(ctx context.Context, r kube.Resource, obj, into kube.Object) error {
	err := c.Client.Create(ctx, r, obj, into)
	c.published <- into.GetName()
	return err
}

func TestLanes(t *testing.T) {
	h := world(t, "a")
	c := start(h)
	h.Settle()
	key := c.memory.keysAt("{zone: a}")[0]
	lane := func(name, want string, key reconcile.Key) {
		t.Helper()
		if got := c.lane(key); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	lane("a poll", laneUsual, key)
	lane("one never asked", laneUsual, askKey("x", "y"))
	c.memory.hurry(key)
	lane("somebody waits", laneUrgent, key)
	c.memory.failed(key, h.Clock.Now())
	lane("B067 it fails, whoever waits", laneFailing, key)
	lane("clearing up", string(ofObject), objectKey("x"))
	lane("all of a class", string(ofGroup), groupKey("x"))
}

// B021: twenty segments of a hundred fail for ever; what a new node brings is published at once.
func TestFailingNodesDelayNobody(t *testing.T) {
	h := kit.New(t)
	h.Horizon = 20 * time.Second
	h.Put(late("fast"))
	for i := range 100 {
		node := fmt.Sprintf("n%d", i)
		h.Put(kit.Node(node, map[string]string{"zone": node}), kit.CSINode(node, "zone"))
	}
	h.Driver.Next("GetCapacity", kit.Reply{Code: codes.Internal, Times: 20})
	start(h)
	h.Horizon = 0
	h.Settle()
	if got := len(objects(h)); got != 80 {
		t.Fatalf("B021: %d objects", got)
	}
	h.Put(kit.Node("new", map[string]string{"zone": "new"}), kit.CSINode("new", "zone"))
	h.Log.Clear()
	h.Settle()
	did(t, h, "B021 a new node costs one question and one write", "driver GetCapacity zone=new → OK", "create csistoragecapacities default/")
	kit.Remove[*corev1.Node](h.API, kube.Key{Name: "new"})
	h.Settle()
	if got := len(objects(h)); got != 80 {
		t.Errorf("B021: %d objects", got)
	}
}
