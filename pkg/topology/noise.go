// SPDX-License-Identifier: Apache-2.0

package topology

// isNoise tells a change of labels that no set of keys sees. Agents label nodes all the time, and with a segment for each node a
// needless change would have all of them sorted anew by the next claim. The caller holds the lock.
func (x *Index) isNoise(before, after node) bool {
	if !before.known || !after.known || before.csiNode != after.csiNode || before.registered != after.registered || before.setID() != after.setID() {
		return false
	}
	for _, set := range x.sets {
		was, had := segmentOn(set.keys, before.labels)
		is, has := segmentOn(set.keys, after.labels)
		if had != has || was.Compare(is) != 0 {
			return false
		}
	}
	return true
}
