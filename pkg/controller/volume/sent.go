// SPDX-License-Identifier: Apache-2.0

package volume

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// markSent remembers which version of a PersistentVolume the API server has deleted, or begun to. The
// deletion names that version, so whoever sees it later sees the past; deleting it again is refused.
func (c *Controller) markSent(v *corev1.PersistentVolume) {
	c.memory.markSent(v.UID, v.ResourceVersion)
	// The watch may have told of the end already, and then nobody else forgets it.
	if cached, ok := c.Volumes.Lookup(kube.KeyOf(v)); !ok || cached.UID != v.UID {
		c.memory.forget(v.Name, v.UID)
	}
}

func (m *memory) markSent(uid types.UID, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sent == nil {
		m.sent = map[types.UID]string{}
	}
	m.sent[uid] = version
}

func (m *memory) isSent(v *corev1.PersistentVolume) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	version, ok := m.sent[v.UID]
	return ok && version == v.ResourceVersion
}
