// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
)

// unserved remembers, by the snapshot's UID, whose contents nobody works on, so that each is told of once.
// It is lost with the process, which costs one event more.
type unserved struct {
	gauge *prometheus.GaugeVec

	mu    sync.Mutex
	known map[types.UID]neglect
}

// neglect is what a content waits for: its driver's sidecar, to be taken or, when leaving, to be deleted.
type neglect struct {
	driver  string
	leaving bool
}

// newUnserved registers the metric; registry may be nil.
func newUnserved(registry prometheus.Registerer) *unserved {
	u := &unserved{known: map[types.UID]neglect{}, gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "csi_tandem_snapshots_unserved",
		Help: "VolumeSnapshots whose content no sidecar of its driver has touched for two minutes.",
	}, []string{"driver_name"})}
	if registry != nil {
		registry.MustRegister(u.gauge)
	}
	return u
}

func (u *unserved) isKnown(uid types.UID, leaving bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	known, ok := u.known[uid]
	return ok && known.leaving == leaving
}

func (u *unserved) add(uid types.UID, n neglect) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.drop(uid)
	u.known[uid] = n
	u.gauge.WithLabelValues(n.driver).Inc()
}

// observe forgets a content that somebody has begun to work on.
func (u *unserved) observe(in snapshot.SnapshotInput) {
	if in.Snapshot != nil && in.Content != nil && in.Content.DeletionTimestamp == nil && snapshot.IsServed(in.Content, in.Options) {
		u.forget(in.Snapshot.UID)
	}
}

func (u *unserved) forget(uid types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.drop(uid)
}

func (u *unserved) drop(uid types.UID) {
	if known, ok := u.known[uid]; ok {
		u.gauge.WithLabelValues(known.driver).Dec()
		delete(u.known, uid)
	}
}
