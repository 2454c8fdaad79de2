// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// start is where the preference of a claim without a node begins among n segments. All claims of one
// replica of a StatefulSet get the same start, whatever the template of the claim is called, and the
// next replica gets the next one: the replicas spread, and the volumes of a replica meet.
func start(claim string, n int) int {
	if n == 0 {
		return 0
	}
	hash, index := hashOf(claim)
	// 32-bit arithmetic that may wrap, so that the order is the one that clusters are used to.
	return int((hash + index) % uint32(n))
}

func hashOf(claim string) (hash, index uint32) {
	base := claim
	if i := strings.LastIndexByte(claim, '-'); i >= 0 {
		if number, err := strconv.ParseUint(claim[i+1:], 10, 32); err == nil {
			index = uint32(number)
			base = claim[:i]
			base = base[strings.LastIndexByte(base, '-')+1:]
		}
	}
	h := fnv.New32()
	h.Write([]byte(base))
	return h.Sum32(), index
}
