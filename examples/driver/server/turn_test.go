// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"sync"
	"testing"
)

// A turn that is not exclusive loses counts here; one that is never forgotten fills the memory with every volume there ever was.
func TestTurnsAreExclusiveAndForgotten(t *testing.T) {
	var ts turns
	counts := [2]int{}
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			defer ts.take(fmt.Sprint("v", i%2))()
			counts[i%2]++
		})
	}
	all.Wait()
	if counts != [2]int{100, 100} || len(ts.open) != 0 {
		t.Errorf("counted %v, remembered %d", counts, len(ts.open))
	}
}

func TestTurnOfOneVolumeDoesNotHoldAnother(t *testing.T) {
	var ts turns
	defer ts.take("a")()
	ts.take("b")()
}
