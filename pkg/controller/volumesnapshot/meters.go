// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"sync"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
)

// Operations and outcomes, under the names that dashboards have for them.
const (
	opCreate         = "CreateSnapshot"
	opCreateAndReady = "CreateSnapshotAndReady"
	opDelete         = "DeleteSnapshot"

	outcomeSuccess = "success"
	outcomeCancel  = "cancel"

	unknownDriver = "unknown"
)

// operation is one thing under way with one snapshot.
type operation struct {
	uid  types.UID
	name string
}

// begun is what is known of an operation when it begins.
type begun struct {
	at           time.Time
	driver, sort string
}

// meters measure how long users wait, from the first look at a snapshot to its end.
type meters struct {
	clock    clock.PassiveClock
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge

	mu   sync.Mutex
	open map[operation]begun
}

// newMeters registers the metrics; registry may be nil.
func newMeters(registry prometheus.Registerer, clk clock.PassiveClock) *meters {
	m := &meters{
		clock: clk, open: map[operation]begun{},
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "snapshot_controller_operation_total_seconds",
			Help:    "[ALPHA] Total number of seconds spent by the controller on an operation",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600},
		}, []string{"driver_name", "operation_name", "snapshot_type", "operation_status"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "snapshot_controller_operations_in_flight",
			Help: "[ALPHA] Total number of operations in flight",
		}),
	}
	if registry != nil {
		registry.MustRegister(m.seconds, m.inFlight)
	}
	return m
}

// begin starts what the snapshot still needs; it is called when we do something about it, so snapshots of
// others are not counted.
func (m *meters) begin(in snapshot.SnapshotInput) {
	s := in.Snapshot
	if s == nil {
		return
	}
	started := begun{at: m.clock.Now(), driver: driverOf(in), sort: "dynamic"}
	if binding.IsPreProvisioned(s) {
		started.sort = "pre-provisioned"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case s.DeletionTimestamp != nil:
		m.start(operation{s.UID, opDelete}, started)
	case !isReady(s):
		m.start(operation{s.UID, opCreateAndReady}, started)
		if s.Status == nil || s.Status.CreationTime == nil {
			m.start(operation{s.UID, opCreate}, started)
		}
	}
	m.inFlight.Set(float64(len(m.open)))
}

func (m *meters) start(op operation, started begun) {
	if _, running := m.open[op]; !running {
		m.open[op] = started
	}
}

// observe ends what a living snapshot has reached.
func (m *meters) observe(in snapshot.SnapshotInput) {
	s := in.Snapshot
	if s == nil || s.DeletionTimestamp != nil || s.Status == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.Status.CreationTime != nil {
		m.end(operation{s.UID, opCreate}, outcomeSuccess, driverOf(in))
	}
	if isReady(s) {
		m.end(operation{s.UID, opCreateAndReady}, outcomeSuccess, driverOf(in))
	}
	m.inFlight.Set(float64(len(m.open)))
}

// gone ends everything of a snapshot that does not exist any more. What was still being made is told as
// cancelled, with the time that the deletion took.
func (m *meters) gone(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	deletion, deleted := m.open[operation{uid, opDelete}]
	for _, name := range []string{opCreate, opCreateAndReady} {
		op := operation{uid, name}
		if started, running := m.open[op]; running && deleted {
			started.at = deletion.at
			m.open[op] = started
		}
		m.end(op, outcomeCancel, "")
	}
	m.end(operation{uid, opDelete}, outcomeSuccess, "")
	m.inFlight.Set(float64(len(m.open)))
}

// end takes the driver from what was known at the start when nothing is known now.
func (m *meters) end(op operation, outcome, driver string) {
	started, running := m.open[op]
	if !running {
		return
	}
	delete(m.open, op)
	if driver == "" || driver == unknownDriver {
		driver = started.driver
	}
	m.seconds.WithLabelValues(driver, op.name, started.sort, outcome).Observe(m.clock.Since(started.at).Seconds())
}

func driverOf(in snapshot.SnapshotInput) string {
	switch {
	case in.Content != nil:
		return in.Content.Spec.Driver
	case in.Class != nil:
		return in.Class.Driver
	default:
		return unknownDriver
	}
}

func isReady(s *snapv1.VolumeSnapshot) bool {
	return s.Status != nil && s.Status.ReadyToUse != nil && *s.Status.ReadyToUse
}
