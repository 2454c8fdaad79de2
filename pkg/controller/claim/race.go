// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Surveyor is what a process for one node asks before it takes a claim.
type Surveyor interface {
	GetCapacity(ctx context.Context, request *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error)
}

const (
	// roomStays is how long the driver's answer about its room serves the claims of a burst.
	roomStays = time.Second
	// crowdStays is how long a count of the nodes serves: it only says how wide the race has to be.
	crowdStays = 10 * time.Minute
	// afterConflict is when a claim is looked at again that somebody has changed meanwhile; the watch mostly
	// brings it back earlier.
	afterConflict = 100 * time.Millisecond
)

// surveys holds answers that serve more than one claim.
type surveys struct {
	mu      sync.Mutex
	rooms   map[string]answered
	nodes   int
	counted time.Time
}

type answered struct {
	answer *csi.GetCapacityResponse
	at     time.Time
}

// fetchRoom asks how much room there is on this node, and how many nodes there are. Both cost one short call at
// most, which changes nothing.
func (c *Controller) fetchRoom(ctx context.Context, in provision.ClaimInput, request *csi.GetCapacityRequest) *provision.RoomState {
	state := &provision.RoomState{Nodes: c.fetchCrowd(ctx), Taken: c.taken()}
	if request == nil || c.Surveyor == nil {
		return state
	}
	key := roomKey(in)
	now := c.Clock.Now()
	c.surveys.mu.Lock()
	known, ok := c.surveys.rooms[key]
	c.surveys.mu.Unlock()
	if ok && now.Sub(known.at) < roomStays {
		state.Answer = known.answer
		return state
	}
	state.Answer, state.Err = c.Surveyor.GetCapacity(ctx, request)
	if state.Err != nil {
		klog.FromContext(ctx).Info("the driver does not say how much room there is", "err", state.Err)
		state.Answer = nil
		return state
	}
	c.surveys.mu.Lock()
	defer c.surveys.mu.Unlock()
	if c.surveys.rooms == nil || len(c.surveys.rooms) > maxRooms {
		c.surveys.rooms = map[string]answered{}
	}
	c.surveys.rooms[key] = answered{state.Answer, now}
	return state
}

// maxRooms bounds the answers that are held; there is one for each class and way of access.
const maxRooms = 1000

// roomKey is the same for claims about which the driver is asked the same.
func roomKey(in provision.ClaimInput) string {
	parts := []string{string(in.Class.UID), in.Class.ResourceVersion}
	if mode := in.Claim.Spec.VolumeMode; mode != nil {
		parts = append(parts, string(*mode))
	}
	for _, mode := range in.Claim.Spec.AccessModes {
		parts = append(parts, string(mode))
	}
	return strings.Join(parts, "/")
}

// forgetRooms is for when a volume came or went.
func (c *Controller) forgetRooms() {
	c.surveys.mu.Lock()
	defer c.surveys.mu.Unlock()
	c.surveys.rooms = nil
}

// fetchCrowd counts the nodes. Not to know leaves the race as wide as the flags say.
func (c *Controller) fetchCrowd(ctx context.Context) int {
	if c.CountNodes == nil {
		return 0
	}
	now := c.Clock.Now()
	c.surveys.mu.Lock()
	nodes, counted := c.surveys.nodes, c.surveys.counted
	c.surveys.mu.Unlock()
	if !counted.IsZero() && now.Sub(counted) < crowdStays {
		return nodes
	}
	nodes, err := c.CountNodes(ctx)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("how many nodes there are is not known", "err", err)
		nodes = 0
	}
	c.surveys.mu.Lock()
	defer c.surveys.mu.Unlock()
	c.surveys.nodes, c.surveys.counted = nodes, now
	return nodes
}

// taken is what the claims of this node ask for that have no volume yet: the driver does not know of them. What it has refused takes no
// room. Claims may ask for anything, and for more together than a number can tell.
func (c *Controller) taken() int64 {
	var sum int64
	for _, claim := range c.Claims.ByIndex(kube.ByNode, c.config.Node) {
		if _, refused := c.memory.of(claim.UID); refused != nil || !c.config.IsClaimOurs(claim) {
			continue
		}
		asked := max(claim.Spec.Resources.Requests.Storage().Value(), 0)
		sum += min(asked, math.MaxInt64-sum)
	}
	return sum
}

// actRarely does the steps that only a process for one node comes to, and those that remove what was made.
func (c *Controller) actRarely(ctx context.Context, in provision.ClaimInput, step provision.ClaimStep) (reconcile.Result, error) {
	switch s := step.(type) {
	case provision.BecomeOwner:
		return c.own(ctx, in, s)
	case provision.StandBack:
		return c.standBack(ctx, in, s)
	case provision.Discard:
		return c.discard(ctx, s.Attempt)
	case provision.FinishUndo:
		return c.finishUndo(ctx, in, s.Attempt)
	}
	return reconcile.Result{}, fmt.Errorf("step %T has no effect here", step)
}

// own selects this node for a claim. The resource version decides between the nodes that try.
func (c *Controller) own(ctx context.Context, in provision.ClaimInput, step provision.BecomeOwner) (reconcile.Result, error) {
	claim := in.Claim
	patched, err := kube.Patch(ctx, c.Client, claim, func(o *corev1.PersistentVolumeClaim) {
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		o.Annotations[wellknown.AnnSelectedNode] = step.Node
	})
	switch {
	case kube.IsGone(err):
		return reconcile.Result{}, nil
	case kube.IsConflict(err):
		c.memory.lose(keyOf(claim), c.Clock.Now())
		return reconcile.Result{After: afterConflict}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("PVC %s/%s: selecting node %q for PVC failed: %w", claim.Namespace, claim.Name, step.Node, err)
	}
	c.Claims.Assume(patched)
	c.memory.endRace(claim.UID)
	klog.FromContext(ctx).V(2).Info("claim taken for this node", "node", step.Node)
	return reconcile.Result{After: soon}, nil
}

// soon is when a claim that was taken is provisioned: by the workers for claims that have a node.
const soon = time.Millisecond

// standBack leaves a claim to other nodes for a while.
func (c *Controller) standBack(ctx context.Context, in provision.ClaimInput, s provision.StandBack) (reconcile.Result, error) {
	c.memory.stand(in.Claim.UID)
	klog.FromContext(ctx).V(4).Info("standing back", "why", s.Why)
	tell := c.Recorder.Normal
	if s.Shared {
		tell = c.Recorder.Shared
	}
	if s.Tell && ctx.Err() == nil {
		tell(in.Claim, wellknown.ReasonProvisioningFailed, fault.Sentence(s.Err))
	}
	return reconcile.Result{After: s.After}, nil
}

// discard removes a volume that was made here for a claim which is another node's by now.
func (c *Controller) discard(ctx context.Context, attempt *provision.Attempt) (reconcile.Result, error) {
	in, undo := c.gather(keyOfRef(attempt.Ref)), provision.Strayed(attempt)
	secrets, err := kube.FetchSecret(ctx, c.Client, secretKey(attempt.Secret))
	switch {
	case err == nil:
		return c.undo(ctx, settlement{attempt: attempt, secrets: secrets}, undo)
	case isGoneForGood(in, err):
		return c.lackSecret(ctx, in, undo.Begun().Attempt, err)
	default:
		return reconcile.Result{}, fmt.Errorf("removing volume %s, which another node has made as well: %w", attempt.Name(), err)
	}
}

// Freed looks again at the claims that no node has taken, because there may be more room here.
func (c *Controller) Freed() {
	c.forgetRooms()
	for _, key := range c.memory.racing() {
		c.queue.Add(key)
	}
}

// race is what is remembered of a claim without a node, by where it is.
type race struct {
	provision.Race
	key reconcile.Key
}

// enter gives the race for a claim, which begins with the first look at it.
func (m *memory) enter(key reconcile.Key, now time.Time) provision.Race {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.races[key.UID]
	if !ok || r.Began.IsZero() {
		r.key, r.Began = key, now
		m.races[key.UID] = r
	}
	return r.Race
}

// lose notes that this node did not get a claim, or could not serve it.
func (m *memory) lose(key reconcile.Key, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.races[key.UID]
	r.key, r.Began, r.Tries = key, now, r.Tries+1
	m.races[key.UID] = r
}

// stand notes that this node stood back: its race begins anew with the next look.
func (m *memory) stand(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.races[uid]
	r.Began, r.Stood = time.Time{}, r.Stood+1
	m.races[uid] = r
}

// endRace forgets the race for a claim.
func (m *memory) endRace(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.races, uid)
}

func (m *memory) isRacing(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.races[uid]
	return ok
}

// racing lists the claims that are raced for.
func (m *memory) racing() []reconcile.Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := make([]reconcile.Key, 0, len(m.races))
	for _, r := range m.races {
		keys = append(keys, r.key)
	}
	slices.SortFunc(keys, func(a, b reconcile.Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
