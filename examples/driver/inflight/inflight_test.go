// SPDX-License-Identifier: Apache-2.0

package inflight

import "testing"

func TestOneAtATime(t *testing.T) {
	var table Table
	done, ok := table.Begin("a")
	if !ok {
		t.Fatal("a free key was refused")
	}
	if _, ok := table.Begin("a"); ok {
		t.Error("a key was given twice")
	}
	if _, ok := table.Begin("b"); !ok {
		t.Error("another key was refused")
	}
	done()
	if _, ok := table.Begin("a"); !ok {
		t.Error("a key that was given back is still taken")
	}
}
