// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memory holds what is known of volumes beyond their objects. All of it may be lost: it saves repeated
// calls of the driver, and nothing depends on it.
type memory struct {
	mu sync.Mutex
	// deleted are the volumes that the driver has removed and whose PersistentVolume is still there.
	deleted map[string]types.UID
	// unknown are those of them that the driver did not know, so that it may have deleted nothing, with the claim that had let each go.
	unknown map[types.UID]types.UID
	// asked are the volumes that the driver was asked to delete, and has given no answer that tells what became of them.
	asked map[types.UID]bool
	// missing is since when the secret for the deletion of a volume is known not to exist.
	missing map[types.UID]time.Time
	// sent is the version in which the API server has taken our deletion of a PersistentVolume.
	sent map[types.UID]string
	// seen is when a volume was first looked at, in a process that serves one node.
	seen map[types.UID]time.Time
}

func newMemory() *memory {
	return &memory{
		deleted: map[string]types.UID{}, unknown: map[types.UID]types.UID{}, asked: map[types.UID]bool{},
		missing: map[types.UID]time.Time{}, seen: map[types.UID]time.Time{},
	}
}

func (m *memory) of(name string, uid types.UID) (deleted bool, missing time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.deleted[name]
	return ok && known == uid, m.missing[uid]
}

func (m *memory) markDeleted(name string, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deleted[name] = uid
	delete(m.missing, uid)
}

// markAsked notes that a deletion was asked for, and may have been done.
func (m *memory) markAsked(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[uid] = true
}

func (m *memory) isAsked(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[uid]
}

// takeAsked tells once whether a volume may have been deleted.
func (m *memory) takeAsked(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := m.asked[uid]
	delete(m.asked, uid)
	return asked
}

// markUnknown notes that the driver did not know a volume.
func (m *memory) markUnknown(volume *corev1.PersistentVolume) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unknown[volume.UID] = claimOf(volume)
}

// reconsider forgets that a volume which is to stay counts as deleted, unless the driver has certainly deleted it: it may be in use again, and has to
// be asked for when it goes. What was certainly deleted is not asked for twice: its id may mean somebody else's volume by then.
func (m *memory) reconsider(volume *corev1.PersistentVolume) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, unknown := m.unknown[volume.UID]; unknown {
		m.undelete(volume)
	}
}

// revise forgets that a volume which the driver did not know counts as deleted, once it leads to another claim than at that time.
func (m *memory) revise(volume *corev1.PersistentVolume) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, unknown := m.unknown[volume.UID]; unknown && claimOf(volume) != "" && before != claimOf(volume) {
		m.undelete(volume)
	}
}

// undelete is called under the lock.
func (m *memory) undelete(volume *corev1.PersistentVolume) {
	if m.deleted[volume.Name] == volume.UID {
		delete(m.deleted, volume.Name)
		delete(m.unknown, volume.UID)
	}
}

// claimOf is the claim that a volume leads to.
func claimOf(volume *corev1.PersistentVolume) types.UID {
	if volume.Spec.ClaimRef == nil {
		return ""
	}
	return volume.Spec.ClaimRef.UID
}

// markMissing notes that a secret does not exist; the first time counts.
func (m *memory) markMissing(uid types.UID, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.missing[uid].IsZero() {
		m.missing[uid] = now
	}
}

// first gives when a volume was first looked at.
func (m *memory) first(uid types.UID, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen[uid].IsZero() {
		m.seen[uid] = now
	}
	return m.seen[uid]
}

// settle forgets when a volume was first looked at, because nothing is to be done about it.
func (m *memory) settle(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, uid)
}

func (m *memory) clearMissing(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.missing, uid)
}

func (m *memory) forget(name string, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.missing, uid)
	delete(m.seen, uid)
	delete(m.sent, uid)
	delete(m.unknown, uid)
	delete(m.asked, uid)
	if m.deleted[name] == uid {
		delete(m.deleted, name)
	}
}
