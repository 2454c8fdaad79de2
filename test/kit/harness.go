// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// Room is a controller as the scheduler sees it.
type Room struct {
	Name      string
	Reconcile reconcile.Func
	// Keys turns a change into keys; make it with Feeds and On.
	Keys func(Change) []reconcile.Key
}

// On makes a feed of changes of one kind, such as what a room does with an informer's events.
func On[T kube.Object](keys func(kube.Change[T]) []reconcile.Key) func(Change) []reconcile.Key {
	plural := kube.ResourceOf[T]().Plural
	return func(change Change) []reconcile.Key {
		if change.Resource.Plural != plural {
			return nil
		}
		typed := kube.Change[T]{Deleted: change.New == nil}
		typed.Old, _ = change.Old.(T)
		typed.New, _ = change.New.(T)
		return keys(typed)
	}
}

// OwnKey is the feed of a room whose keys are the objects of one kind.
func OwnKey[T kube.Object]() func(Change) []reconcile.Key {
	return On(func(change kube.Change[T]) []reconcile.Key {
		obj := change.Object()
		return []reconcile.Key{{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	})
}

// Feeds joins feeds.
func Feeds(feeds ...func(Change) []reconcile.Key) func(Change) []reconcile.Key {
	return func(change Change) []reconcile.Key {
		var keys []reconcile.Key
		for _, feed := range feeds {
			keys = append(keys, feed(change)...)
		}
		return keys
	}
}

// Harness is a world (API, Driver, Clock, Log, actors) and one life of the program in it (Ctx, Stores,
// Recorder, Topology, rooms). Restart ends that life and begins another in the same world.
type Harness struct {
	T      testing.TB
	API    *API
	Driver *Driver
	Clock  *testingclock.FakeClock
	Log    *Log

	// Ctx is the context of the program; what is done under it counts as an effect of the program.
	Ctx      context.Context
	Stores   *Stores
	Recorder *Recorder
	Topology *topology.Index

	// RetryStart and RetryMax are the backoff of failed keys.
	RetryStart, RetryMax time.Duration
	// Horizon is how much fake time one Settle may pass. Rooms that look again for ever stop there.
	Horizon time.Duration
	// MaxTurns is how many keys one Settle may work on before the test fails.
	MaxTurns int

	process *process
	rooms   []*Room
	actors  []*Room
	errors  []string
	trace   []string
	lag     int
	// cuts are the effects at which the program was disturbed so far.
	cuts []string

	mu      sync.Mutex
	changes []observed

	ready    []task
	timers   []timer
	failures map[task]int
}

// observed is a change on its way to rooms or to actors.
type observed struct {
	change  Change
	toActor bool
}

// New makes an empty world with a program that has no rooms yet.
func New(t testing.TB) *Harness {
	t.Helper()
	clk := testingclock.NewFakeClock(Start)
	log := &Log{}
	h := &Harness{
		T: t, API: NewAPI(clk, log), Driver: NewDriver(clk, log), Clock: clk, Log: log,
		RetryStart: time.Second, RetryMax: 5 * time.Minute, Horizon: 30 * time.Minute, MaxTurns: 5000,
		failures: map[task]int{},
	}
	h.API.listen(func(change Change) { h.observe(change, true) })
	h.begin()
	t.Cleanup(h.end)
	return h
}

// begin starts a life of the program.
func (h *Harness) begin() {
	ctx := klog.NewContext(h.T.Context(), klog.New(nil))
	h.Ctx, h.process = newProcess(ctx)
	h.Recorder = NewRecorder(h.Log)
	h.Topology = topology.NewIndex()
	h.Stores = NewStores(h.API)
	h.Stores.tell = h.hear
	for _, node := range h.Stores.Nodes.All() {
		h.Topology.SetNode(node.Name, node.Labels)
	}
	for _, node := range h.Stores.CSINodes.All() {
		feedCSINode(h.Topology, Change{New: node})
	}
	h.Stores.Lag(h.lag)
}

// Lag makes the caches of this and later lives follow only after so many turns.
func (h *Harness) Lag(turns int) {
	h.lag = turns
	h.Stores.Lag(turns)
}

// Restart ends the program, with all that it remembers, and begins a new one without rooms.
func (h *Harness) Restart() {
	h.end()
	h.leave()
	h.begin()
}

// leave takes the rooms of a life out of the world, with all that waits for them.
func (h *Harness) leave() {
	h.rooms = nil
	isActor := func(t task) bool { return slices.Contains(h.actors, t.room) }
	h.ready = slices.DeleteFunc(h.ready, func(t task) bool { return !isActor(t) })
	h.timers = slices.DeleteFunc(h.timers, func(t timer) bool { return !isActor(t.task) })
	h.mu.Lock()
	h.changes = slices.DeleteFunc(h.changes, func(o observed) bool { return !o.toActor })
	h.mu.Unlock()
}

// end ends the program, and complains of what it did to objects that it shares.
func (h *Harness) end() { h.finish(h.process, h.Stores) }

func (h *Harness) finish(p *process, stores *Stores) {
	p.kill()
	stores.stop()
	for _, object := range stores.Touched() {
		h.T.Errorf("the cached object %s was changed in place", object)
	}
}

// HasEnded tells that a cut has ended the program.
func (h *Harness) HasEnded() bool { return h.process.dead.Load() }

// hear takes what the caches have just seen.
func (h *Harness) hear(change Change) {
	switch change.Resource.Plural {
	case "nodes":
		if change.New == nil {
			h.Topology.RemoveNode(change.Old.GetName())
		} else {
			h.Topology.SetNode(change.New.GetName(), change.New.GetLabels())
		}
	case "csinodes":
		feedCSINode(h.Topology, change)
	}
	h.observe(change, false)
}

func (h *Harness) observe(change Change, toActor bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, observed{change, toActor})
}

// Put stores objects as they are.
func (h *Harness) Put(objects ...kube.Object) { h.API.Put(objects...) }

// Add starts rooms: each is told of every object that exists, as after the first list.
func (h *Harness) Add(rooms ...Room) {
	for i := range rooms {
		h.rooms = append(h.rooms, &rooms[i])
		h.announce(&rooms[i])
	}
}

// Play adds parts of Kubernetes that live outside the program.
func (h *Harness) Play(actors ...Room) {
	for i := range actors {
		h.actors = append(h.actors, &actors[i])
		h.announce(&actors[i])
	}
}

func (h *Harness) announce(room *Room) {
	h.drain() // what happened before is part of the list
	var listed []Change
	stop := h.API.listen(func(change Change) { listed = append(listed, change) })
	stop()
	for _, change := range listed {
		h.enqueueFor(room, change)
	}
}

// Errors are what Reconcile returned, "room key: error" each, in order.
func (h *Harness) Errors() []string { return slices.Clone(h.errors) }

// Trace is every turn so far, for reading after a failure.
func (h *Harness) Trace() string { return strings.Join(h.trace, "\n") }
