// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func volumeAt(name string, version int) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(version)}}
}

// TestAnOwnWriteStaysKnown: what an own write has made is found from then on, also in the moment in which the watch takes over from memory.
// Catches a lookup that asks the cache first, where it is not yet, and then the memory, where it is not any more.
func TestAnOwnWriteStaysKnown(t *testing.T) {
	s := storeOver(newShelf(VolumeIndexes(), true))
	s.Show(volumeAt("first", 1))
	var lost atomic.Pointer[string]
	for n := range 3000 {
		name, version := fmt.Sprint("v", n), n+2
		s.Assume(volumeAt(name, version))
		if _, ok := s.Lookup(Key{Name: name}); !ok {
			t.Fatal("not even at first")
		}
		shown := make(chan struct{})
		go func() { defer close(shown); s.Show(volumeAt(name, version)) }()
		for shows := true; shows; {
			if _, ok := s.Lookup(Key{Name: name}); !ok {
				lost.CompareAndSwap(nil, &name)
			}
			select {
			case <-shown:
				shows = false
			default:
			}
		}
		if l := lost.Load(); l != nil {
			t.Fatalf("after %d volumes: %s was made, is in the cache, and was not found in between", n, *l)
		}
	}
}

// TestAnOldVersionNeverCoversAnOwnWrite: the same for a change.
func TestAnOldVersionNeverCoversAnOwnWrite(t *testing.T) {
	s := storeOver(newShelf(VolumeIndexes(), true))
	s.Show(volumeAt("v", 1))
	for version := 2; version < 30000; version++ {
		s.Assume(volumeAt("v", version))
		shown := make(chan struct{})
		go func() { defer close(shown); s.Show(volumeAt("v", version)) }()
		for shows := true; shows; {
			if found, ok := s.Lookup(Key{Name: "v"}); !ok || found.ResourceVersion != strconv.Itoa(version) {
				<-shown
				t.Fatalf("version %d was written, and then %v was found", version, found)
			}
			for _, found := range s.All() {
				if found.ResourceVersion != strconv.Itoa(version) {
					<-shown
					t.Fatalf("version %d was written, and then version %s was listed", version, found.ResourceVersion)
				}
			}
			select {
			case <-shown:
				shows = false
			default:
			}
		}
	}
}
