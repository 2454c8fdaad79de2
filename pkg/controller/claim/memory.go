// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/provision"
)

// memory holds what is known of claims beyond their objects: attempts whose outcome is open, with the
// exact request, and what the driver found infeasible. It outlives the claims: a volume that may exist
// must be found again even when nobody asks for it any more.
type memory struct {
	mu       sync.Mutex
	attempts map[types.UID]*provision.Attempt
	// found are attempts of earlier processes that wait until the claim is looked at.
	found map[types.UID]*provision.Attempt
	// began is when the first call for a claim was made.
	began    map[types.UID]time.Time
	refusals map[types.UID]*provision.Refusal
	// races are for claims that no node is selected for, in a process that serves one node.
	races map[types.UID]race
	// writing are the claims whose request is being recorded, and settling those whose record is being cleared. Neither
	// begins while the other is at it: the one would take the other's entry off between its write and its call.
	writing  map[types.UID]bool
	settling map[types.UID]int
	// warned are the warnings that were told.
	warned map[warned]bool
}

func newMemory() *memory {
	return &memory{
		attempts: map[types.UID]*provision.Attempt{}, found: map[types.UID]*provision.Attempt{}, began: map[types.UID]time.Time{},
		refusals: map[types.UID]*provision.Refusal{}, races: map[types.UID]race{}, warned: map[warned]bool{},
		writing: map[types.UID]bool{}, settling: map[types.UID]int{},
	}
}

func (m *memory) of(uid types.UID) (*provision.Attempt, *provision.Refusal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.attempts[uid], m.refusals[uid]
}

// open is the attempt of a claim, or what was found of it.
func (m *memory) open(uid types.UID) *provision.Attempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Or(m.attempts[uid], m.found[uid])
}

// keep remembers an attempt. A refusal of an earlier one is over.
func (m *memory) keep(attempt *provision.Attempt, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := attempt.Ref.UID
	if m.attempts[uid] == nil {
		m.began[uid] = now
	}
	m.attempts[uid] = attempt
	delete(m.refusals, uid)
}

// beginWriting is asked before a request is recorded. False means not now.
func (m *memory) beginWriting(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.settling[uid] > 0 || m.found[uid] != nil {
		return false
	}
	m.writing[uid] = true
	return true
}

// endWriting comes after the attempt is kept, or was given up.
func (m *memory) endWriting(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.writing, uid)
}

// beginSettling is asked before a record is cleared. False means that something is begun.
func (m *memory) beginSettling(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.attempts[uid] != nil || m.found[uid] != nil || m.writing[uid] {
		return false
	}
	m.settling[uid]++
	return true
}

func (m *memory) endSettling(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.settling[uid]--; m.settling[uid] == 0 {
		delete(m.settling, uid)
	}
}

// since is how long the work on a claim has taken so far.
func (m *memory) since(uid types.UID, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Sub(m.began[uid])
}

// refuse remembers that a claim's request is infeasible; its attempt is over.
func (m *memory) refuse(uid types.UID, refusal *provision.Refusal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusals[uid] = refusal
}

// forget drops all that is known of a claim, and gives the attempt that was open, or nil.
func (m *memory) forget(uid types.UID) *provision.Attempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	attempt := m.attempts[uid]
	delete(m.attempts, uid)
	delete(m.began, uid)
	delete(m.refusals, uid)
	delete(m.races, uid)
	return attempt
}

func (m *memory) uses(source provision.Source) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, attempt := range m.all() {
		if attempt.Source != nil && *attempt.Source == source && !attempt.IsFreed() {
			return true
		}
	}
	return false
}

// warned is what all claims of a class are warned of once.
type warned struct {
	class types.UID
	cause string
}

// isFirstWarning tells whether a warning about a class is new.
func (m *memory) isFirstWarning(class types.UID, cause string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := warned{class, cause}
	told := m.warned[key]
	m.warned[key] = true
	return !told
}

// unsettled lists the attempts that may have made a volume which no PersistentVolume holds.
func (m *memory) unsettled() []*provision.Attempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all()
}

// all lists the attempts; it is called under the lock.
func (m *memory) all() []*provision.Attempt {
	return slices.AppendSeq(slices.Collect(maps.Values(m.attempts)), maps.Values(m.found))
}
