// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// markWent remembers that a snapshot went with our write. Until the watch has told of that the cache shows
// it as it was before, and the end of its content asks to look at it: whoever did would read the content and
// patch the snapshot, and find neither.
func (c *Controller) markWent(s *snapv1.VolumeSnapshot) {
	c.mu.Lock()
	if c.went == nil {
		c.went = map[types.UID]bool{}
	}
	c.went[s.UID] = true
	c.mu.Unlock()
	// The watch may have been faster, and then nobody else forgets it.
	if cached, ok := c.Snapshots.Lookup(kube.KeyOf(s)); !ok || cached.UID != s.UID {
		c.forget(s.UID)
	}
}

func (c *Controller) hasWent(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.went[uid]
}
