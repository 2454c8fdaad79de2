// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// settledHandles is how many handles of finished claims are remembered: those that the cache may not show
// yet. The watch is never behind by so many volumes for long.
const settledHandles = 1024

// handles knows which volume the driver has given for which claim, from its answer until the cache shows
// the PersistentVolume. Without it, two claims that are answered with one volume at the same time would
// both get it. It may be lost: what is written by then is in the cache.
type handles struct {
	mu      sync.Mutex
	byName  map[string]taker
	byClaim map[types.UID]string
	settled []string
}

// taker is who has a volume: a claim, and the PersistentVolume that is or will be written for it.
type taker struct {
	claim   types.UID
	volume  string
	settled bool
}

func newHandles() *handles {
	return &handles{byName: map[string]taker{}, byClaim: map[types.UID]string{}}
}

// take gives a volume to a claim that asks, or tells who has it. The first who comes gets it.
func (h *handles) take(handle string, asks taker) taker {
	h.mu.Lock()
	defer h.mu.Unlock()
	if has, ok := h.byName[handle]; ok && has.claim != asks.claim {
		return has
	}
	if old, ok := h.byClaim[asks.claim]; ok && old != handle {
		h.drop(old)
	}
	h.byName[handle], h.byClaim[asks.claim] = asks, handle
	return asks
}

// free gives back what a claim has, when nothing was written for it.
func (h *handles) free(claim types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if handle, ok := h.byClaim[claim]; ok && !h.byName[handle].settled {
		h.drop(handle)
	}
}

// settle notes that the PersistentVolume is written; from now on it only bridges the delay of the cache.
func (h *handles) settle(claim types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	handle, ok := h.byClaim[claim]
	if !ok {
		return
	}
	has := h.byName[handle]
	has.settled = true
	h.byName[handle] = has
	h.settled = append(h.settled, handle)
	if len(h.settled) > settledHandles {
		oldest := h.settled[0]
		h.settled = h.settled[1:]
		if h.byName[oldest].settled {
			h.drop(oldest)
		}
	}
}

// served tells that a PersistentVolume was written for a claim not long ago.
func (h *handles) served(claim types.UID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	handle, ok := h.byClaim[claim]
	return ok && h.byName[handle].settled
}

// forget drops what turned out to be over.
func (h *handles) forget(handle string, has taker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byName[handle] == has {
		h.drop(handle)
	}
}

func (h *handles) drop(handle string) {
	delete(h.byClaim, h.byName[handle].claim)
	delete(h.byName, handle)
}
