// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
)

// metrics are those of deletions. Volumes that are not ours, or have to wait, count nowhere.
type metrics struct {
	total     *prometheus.CounterVec
	failures  *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer) metrics {
	labels := []string{"class"}
	m := metrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_persistentvolume_delete_total", Help: "Volumes deleted.",
		}, labels),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_persistentvolume_delete_failed_total", Help: "Attempts to delete a volume that failed.",
		}, labels),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "controller_persistentvolume_delete_duration_seconds", Help: "Time that the driver took to delete a volume.",
			Buckets: prometheus.DefBuckets,
		}, labels),
	}
	if registry != nil {
		registry.MustRegister(m.total, m.failures, m.durations)
	}
	return m
}

func (m metrics) deleted(volume *corev1.PersistentVolume, took time.Duration) {
	m.total.WithLabelValues(volume.Spec.StorageClassName).Inc()
	m.durations.WithLabelValues(volume.Spec.StorageClassName).Observe(took.Seconds())
}

func (m metrics) failed(volume *corev1.PersistentVolume) {
	m.failures.WithLabelValues(volume.Spec.StorageClassName).Inc()
}
