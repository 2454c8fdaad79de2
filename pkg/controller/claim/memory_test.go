// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/provision"
)

// TestFindWhileItSettles: an earlier process's attempt was read off the record, and before it is taken up the PersistentVolume of its claim begins
// to come to its end, which takes the entry off a moment later. Catches a memory that asks only whether the entry is there: with the volume kept
// or removed, the attempt would make it anew, or delete what was kept.
func TestFindWhileItSettles(t *testing.T) {
	m, found := newMemory(), &provision.Attempt{Ref: &corev1.ObjectReference{UID: "u"}}
	there := func() bool { return true }
	if !m.beginSettling("u") {
		t.Fatal("nothing is begun")
	}
	if m.find(found, there) || m.isFound("u") {
		t.Error("taken up while it is taken off")
	}
	if m.beginWriting("u") {
		t.Error("written while it is taken off: the fresh entry would go with the old one")
	}
	m.endSettling("u")
	if !m.find(found, there) || m.beginSettling("u") || m.beginWriting("u") {
		t.Error("what was found comes first")
	}
}

// TestSettlingWaitsForWhatIsBegun: a call is under way, or is being recorded, while the PersistentVolume that its claim had before comes to its end.
// Catches a memory that has the entry taken off under it: the next process would not know of what is made.
func TestSettlingWaitsForWhatIsBegun(t *testing.T) {
	m, begun := newMemory(), &provision.Attempt{Ref: &corev1.ObjectReference{UID: "u"}}
	if !m.beginWriting("u") || m.beginSettling("u") {
		t.Error("taken off while it is recorded")
	}
	m.keep(begun, time.Time{})
	m.endWriting("u")
	if m.beginSettling("u") {
		t.Error("taken off while the call is under way")
	}
	m.forget("u")
	if !m.beginSettling("u") {
		t.Error("nothing is begun any more")
	}
}
