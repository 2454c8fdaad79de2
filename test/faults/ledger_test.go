// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
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
	// claims are the names of the claims of volumes, by handle.
	claims map[string]string
	// gone are the times before which somebody asked for the deletion.
	gone map[string]time.Time
	// uids are those of claims and snapshots, with their names.
	uids map[string]string
	// foreign are snapshots at the driver that the test made itself and never handed over.
	foreign []string
}

func newLedger() *ledger {
	return &ledger{claims: map[string]string{}, gone: map[string]time.Time{}, uids: map[string]string{}}
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
	l.claims[pv.Spec.CSI.VolumeHandle] = pv.Spec.ClaimRef.Name
}

// wrongDeletions are calls of DeleteVolume for the volume of a claim that nobody had deleted by then (A6).
func (l *ledger) wrongDeletions(calls []proxy.Call) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, call := range calls {
		claim, isKnown := l.claims[call.Name]
		if !isKnown {
			continue
		}
		if gone, isGone := l.gone[claim]; !isGone || call.Arrived.Before(gone) {
			found = append(found, fmt.Sprintf("A6: DeleteVolume was called for %s, the volume of %s, which was alive", call.Name, claim))
		}
	}
	return found
}
