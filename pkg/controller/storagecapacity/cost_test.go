// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// crowd is a cluster of thousands of segments, with a client and a driver that only count. It is no harness:
// that one copies every object many times.
type crowd struct {
	*Controller
	clock   *testingclock.FakeClock
	index   *topology.Index
	objects *kube.Store[*storagev1.CSIStorageCapacity]
	version int
	calls   int
	writes  int
	down    bool
	keys    []reconcile.Key
	waiting map[reconcile.Key]bool
	due     map[reconcile.Key]time.Time
}

func (c *crowd) GetCapacity(context.Context, *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	c.calls++
	if c.down {
		return nil, context.DeadlineExceeded
	}
	return &csi.GetCapacityResponse{AvailableCapacity: 1 << 30}, nil
}

// counter is the client of a crowd.
type counter struct {
	kube.Client
	*crowd
}

// Create implements kube.Client.
func (c *counter) Create(_ context.Context, _ kube.Resource, obj, into kube.Object) error {
	c.writes++
	c.version++
	stored := obj.DeepCopyObject().(*storagev1.CSIStorageCapacity)
	stored.Name, stored.ResourceVersion = "csisc-"+strconv.Itoa(c.version), strconv.Itoa(c.version)
	stored.UID, stored.CreationTimestamp = types.UID(stored.Name), metav1.NewTime(c.clock.Now())
	*into.(*storagev1.CSIStorageCapacity) = *stored
	c.objects.Show(stored)
	c.put(c.KeysOfObject(kube.Change[*storagev1.CSIStorageCapacity]{New: stored})...)
	return nil
}

func (c *crowd) put(keys ...reconcile.Key) {
	for _, key := range keys {
		if !c.waiting[key] {
			c.waiting[key] = true
			c.keys = append(c.keys, key)
		}
	}
}

// drain works on all keys that are due.
func (c *crowd) drain(t testing.TB) {
	for key, due := range c.due {
		if !due.After(c.clock.Now()) {
			delete(c.due, key)
			c.put(key)
		}
	}
	for len(c.keys) > 0 {
		key := c.keys[0]
		c.keys = c.keys[1:]
		delete(c.waiting, key)
		result, err := c.Reconcile(klog.NewContext(t.Context(), klog.Logger{}), key)
		if err != nil {
			t.Fatal(err)
		}
		if due, ok := c.due[key]; result.After > 0 && (!ok || c.clock.Now().Add(result.After).Before(due)) {
			c.due[key] = c.clock.Now().Add(result.After)
		}
	}
}

func (c *crowd) addNode(name string) {
	c.index.SetDriverKeys(name, []string{"host"})
	c.index.SetNode(name, map[string]string{"host": name})
}

func newCrowd(nodes int, classes ...string) *crowd {
	c := &crowd{
		clock: testingclock.NewFakeClock(kit.Start), index: topology.NewIndex(), objects: kube.NewStore(kube.CapacityIndexes()),
		waiting: map[reconcile.Key]bool{}, due: map[reconcile.Key]time.Time{},
	}
	for i := range nodes {
		c.addNode(fmt.Sprint("n", i))
	}
	store := kube.NewStore[*storagev1.StorageClass](nil)
	for _, name := range classes {
		store.Show(late(name, "pool="+name))
	}
	options := NewOptions()
	c.Controller = New(*options, Deps{
		Client: &counter{crowd: c}, Driver: c, DriverName: kit.DriverName, Namespace: kit.Namespace, Identity: "id", Clock: c.clock, Topology: c.index,
		Capabilities: capability.Of(nil), Classes: store, Objects: c.objects, RetryStart: time.Second, RetryMax: 5 * time.Minute,
	})
	c.add = func(key reconcile.Key) { c.put(key) }
	c.memory.setClasses(newTable(c.base, store.All()))
	c.WatchSegments()
	c.put(c.Begin()...)
	return c
}

// TestThousandsOfSegments: 10,000 objects cost one write each, once; then a poll costs one call for each
// question and no write; a new node costs one call for each sort of class and one write for each class; an
// outage makes no queue longer than there are questions.
func TestThousandsOfSegments(t *testing.T) {
	const nodes = 5000
	c := newCrowd(nodes, "fast", "slow")
	c.drain(t)
	if c.calls != 2*nodes || c.writes != 2*nodes {
		t.Fatalf("%d calls and %d writes for %d segments and 2 classes", c.calls, c.writes, nodes)
	}
	poll := c.options.PollInterval
	pass := func(d time.Duration) {
		c.calls, c.writes = 0, 0
		for range int(d / time.Second) {
			c.clock.Step(time.Second)
			c.drain(t)
		}
	}
	pass(2 * poll) // until each has found its time
	worst := 0
	for range 60 {
		pass(time.Second)
		worst = max(worst, c.calls)
	}
	if mean := 2 * nodes / 60; worst > 2*mean {
		t.Errorf("%d calls in one second of a poll, %d in the mean", worst, mean)
	}
	if pass(poll); c.calls != 2*nodes || c.writes != 0 {
		t.Errorf("%d calls and %d writes in one poll of %d questions", c.calls, c.writes, 2*nodes)
	}
	c.calls, c.writes = 0, 0
	c.addNode("new")
	if c.drain(t); c.calls != 2 || c.writes != 2 {
		t.Errorf("%d calls and %d writes for a new node", c.calls, c.writes)
	}
	c.down = true
	pass(5 * time.Minute)
	for range 10000 {
		c.Failed("fast", "n1")
		c.Provisioned(at())
	}
	if keys := len(c.keys) + len(c.due); keys > 2*(2*nodes+2)+2 {
		t.Errorf("%d keys wait in an outage", keys)
	}
	if c.calls > 2*(nodes+1)*(8+5) {
		t.Errorf("%d calls in five minutes of an outage", c.calls)
	}
	if got := c.count(); got != (counts{goal: 10002, current: 10002, failing: 10002}) {
		t.Errorf("got %+v", got)
	}
}

// PP-6, PP-7: one event costs the same among a few segments and among thousands. One that compares the object
// with all others, or the segment with all known, grows.
func TestEventsDoNotCountSegments(t *testing.T) {
	cost := func(nodes int) (object, node, place float64) {
		c := newCrowd(nodes, "fast", "slow")
		c.drain(t)
		seen := c.objects.All()[0]
		object = testing.AllocsPerRun(50, func() { c.KeysOfObject(kube.Change[*storagev1.CSIStorageCapacity]{Old: seen, New: seen}) })
		key := c.memory.keysAt("{host: n1}")[0]
		place = testing.AllocsPerRun(50, func() {
			c.clock.Step(2 * time.Second)
			if _, err := c.Reconcile(t.Context(), key); err != nil {
				t.Error(err)
			}
		})
		segment := topology.SegmentOf(map[string]string{"host": "x"})
		node = testing.AllocsPerRun(50, func() {
			c.keysOfSegment(segment, true)
			c.keysOfSegment(segment, false)
		})
		return object, node, place
	}
	o1, n1, p1 := cost(10)
	o2, n2, p2 := cost(1000)
	if o2 > o1+1 || n2 > n1+1 || p2 > p1+1 {
		t.Errorf("PP-6 PP-7: among 10 segments %v %v %v allocations, among 1000 %v %v %v", o1, n1, p1, o2, n2, p2)
	}
}

// TestGauges pins names and values. PP-6: a scrape looks at each object once.
func TestGauges(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := newCrowd(3, "c1", "c2", "c3", "c4", "c5")
	registry.MustRegister(&gauges{c.Controller})
	read := func() (values []string) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if strings.Contains(family.GetName(), "_capacity_oldest_answer_") || strings.Contains(family.GetName(), "_capacity_poll_") {
				continue // see TestFreshness
			}
			values = append(values, fmt.Sprint(family.GetName(), " ", family.GetMetric()[0].GetGauge().GetValue()))
		}
		return values
	}
	check := func(name string, want ...string) {
		t.Helper()
		if got := read(); !slices.Equal(got, want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	const failing, current, goal, obsolete = "csi_tandem_capacity_questions_failing ", "csistoragecapacities_desired_current ", "csistoragecapacities_desired_goal ", "csistoragecapacities_obsolete "
	check("before", failing+"0", current+"0", goal+"15", obsolete+"0")
	c.drain(t)
	check("T106 five classes and three segments", failing+"0", current+"15", goal+"15", obsolete+"0")
	c.index.RemoveNode("n1")
	check("T106 before clearing up", failing+"0", current+"10", goal+"10", obsolete+"5")
}

func BenchmarkPublish(b *testing.B) {
	for b.Loop() {
		newCrowd(1000, "fast", "slow").drain(b)
	}
}
