// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/csi-tandem/csi-tandem/test/proxy"
)

// ledger remembers what objects cannot tell any more when they are gone: whose volume it was, and when its user let it go.
type ledger struct {
	mu sync.Mutex
	// owners are those of volumes, by handle.
	owners map[string]owner
	// gone are the times before which somebody asked for the deletion.
	gone map[string]time.Time
	// uids are those of claims and snapshots, with their names.
	uids map[string]string
	// foreign are snapshots at the driver that the test made itself and never handed over.
	foreign []string
}

// owner is the claim of a volume, and since when it was known to be.
type owner struct {
	claim string
	since time.Time
}

func newLedger() *ledger {
	return &ledger{owners: map[string]owner{}, gone: map[string]time.Time{}, uids: map[string]string{}}
}

func (l *ledger) born(name string, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uids[string(uid)] = name
}

func (l *ledger) deleted(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.gone[name]; !ok {
		l.gone[name] = time.Now()
	}
}

func (l *ledger) disown(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.foreign = append(l.foreign, name)
}

func (l *ledger) disowned() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.foreign)
}

func (l *ledger) names() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.uids)
}

// lifeIn is the life whose UID is in the name of something at the driver, or nothing.
func (l *ledger) lifeIn(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, life := range l.uids {
		if strings.Contains(name, uid) {
			return life
		}
	}
	return ""
}

// keep notes the claim of every volume of a driver, until the context ends.
func (l *ledger) keep(ctx context.Context, kube kubernetes.Interface, driver string) {
	for ctx.Err() == nil {
		w, err := kube.CoreV1().PersistentVolumes().Watch(ctx, metav1.ListOptions{})
		if err != nil {
			rest(ctx, 100*time.Millisecond)
			continue
		}
		for event := range w.ResultChan() {
			l.take(event, driver)
		}
		w.Stop()
	}
}

func (l *ledger) take(event watch.Event, driver string) {
	pv, ok := event.Object.(*corev1.PersistentVolume)
	if !ok || pv.Spec.CSI == nil || pv.Spec.CSI.Driver != driver || pv.Spec.ClaimRef == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	handle := pv.Spec.CSI.VolumeHandle
	if _, isKnown := l.owners[handle]; !isKnown {
		l.owners[handle] = owner{pv.Spec.ClaimRef.Name, time.Now()}
	}
}

// wrongDeletions are calls of DeleteVolume for the volume of a claim that nobody had deleted by then (A6). What came before there was
// a PersistentVolume took back an answer that was wrong; a driver that did not do it may answer with the same id when it is right.
func (l *ledger) wrongDeletions(calls []proxy.Call) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, call := range calls {
		owner, isKnown := l.owners[call.Name]
		if !isKnown || call.Arrived.Before(owner.since) {
			continue
		}
		if gone, isGone := l.gone[owner.claim]; !isGone || call.Arrived.Before(gone) {
			found = append(found, fmt.Sprintf("A6: DeleteVolume was called for %s, the volume of %s, which was alive", call.Name, owner.claim))
		}
	}
	return found
}

// TestWrongDeletions: a call counts from the moment at which the volume is an object until its claim is deleted.
func TestWrongDeletions(t *testing.T) {
	l := newLedger()
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Name: "o1"}}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "v"}
	before := time.Now().Add(-time.Second)
	l.take(watch.Event{Object: pv}, "d")
	call := func(id string, at time.Time) proxy.Call { return proxy.Call{Name: id, Arrived: at} }
	now := time.Now().Add(time.Millisecond)
	for name, row := range map[string]struct {
		call  proxy.Call
		wrong bool
	}{
		"before there was an object": {call("v", before), false}, "while it lives": {call("v", now), true}, "of nobody": {call("w", now), false},
	} {
		if got := l.wrongDeletions([]proxy.Call{row.call}); len(got) > 0 != row.wrong {
			t.Errorf("%s: %q", name, got)
		}
	}
	l.deleted("o1")
	if got := l.wrongDeletions([]proxy.Call{call("v", time.Now().Add(time.Second))}); len(got) > 0 {
		t.Errorf("after its deletion: %q", got)
	}
}
