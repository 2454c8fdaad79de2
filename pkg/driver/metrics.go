// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	basemetrics "k8s.io/component-base/metrics"
)

// NewMetrics makes the recorder of csi_sidecar_operations_seconds, in a registry of its own. When the
// process started is told elsewhere. Drivers for which isMigrated, which may be nil, is true get the
// label "migrated".
func NewMetrics(isMigrated func(driver string) bool) metrics.CSIMetricsManager {
	r := &recorder{CSIMetricsManager: newRecorder(), isMigrated: isMigrated}
	r.current.Store(&r.CSIMetricsManager)
	return r
}

func newRecorder(more ...metrics.MetricsManagerOption) metrics.CSIMetricsManager {
	return metrics.NewCSIMetricsManagerWithOptions("", append(more, metrics.WithProcessStartTime(false))...)
}

// recorder records with one set of labels until the driver has said its name, and from then on with the
// set of that driver: the labels of a metric cannot change, and the name is not known at first.
type recorder struct {
	metrics.CSIMetricsManager
	isMigrated func(driver string) bool
	current    atomic.Pointer[metrics.CSIMetricsManager]
}

// SetDriverName implements CSIMetricsManager.
func (r *recorder) SetDriverName(name string) {
	if r.isMigrated != nil && r.isMigrated(name) && !r.HaveAdditionalLabel(metrics.LabelMigrated) {
		labelled := newRecorder(metrics.WithMigration())
		r.current.Store(&labelled)
	}
	(*r.current.Load()).SetDriverName(name)
}

// GetRegistry implements CSIMetricsManager.
func (r *recorder) GetRegistry() basemetrics.KubeRegistry { return (*r.current.Load()).GetRegistry() }

// RecordMetrics implements CSIMetricsManager.
func (r *recorder) RecordMetrics(operation string, err error, took time.Duration) {
	(*r.current.Load()).RecordMetrics(operation, err, took)
}

// WithLabelValues implements CSIMetricsManager.
func (r *recorder) WithLabelValues(labels map[string]string) (metrics.CSIMetricsManager, error) {
	return (*r.current.Load()).WithLabelValues(labels)
}

// HaveAdditionalLabel implements CSIMetricsManager.
func (r *recorder) HaveAdditionalLabel(name string) bool {
	return (*r.current.Load()).HaveAdditionalLabel(name)
}

// MarkMigrated makes the calls under a context count as migrated.
func MarkMigrated(ctx context.Context) context.Context {
	return context.WithValue(ctx, connection.AdditionalInfoKey, connection.AdditionalInfo{Migrated: "true"})
}
