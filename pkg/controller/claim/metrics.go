// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// metrics are those of the claims. Claims that are not ours, or have to wait, are no failures.
type metrics struct {
	total     *prometheus.CounterVec
	failures  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	letGo     prometheus.Counter
	registry  prometheus.Registerer
	// exists tells whether there is a class of a name.
	exists func(class string) bool
}

func newMetrics(registry prometheus.Registerer, exists func(class string) bool) metrics {
	labels := []string{"class", "source"}
	m := metrics{
		registry: registry, exists: exists,
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_persistentvolumeclaim_provision_total", Help: "Volumes provisioned.",
		}, labels),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_persistentvolumeclaim_provision_failed_total", Help: "Attempts to provision a volume that failed.",
		}, labels),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "controller_persistentvolumeclaim_provision_duration_seconds", Help: "Time from the first call of the driver to the PersistentVolume.",
			Buckets: prometheus.DefBuckets,
		}, labels),
		letGo: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "csi_tandem_volumes_outcome_unknown_total", Help: "Volumes of vanished claims of which the driver could not say whether they were made.",
		}),
	}
	if registry != nil {
		registry.MustRegister(m.total, m.failures, m.durations, m.letGo)
	}
	return m
}

// watch shows what is open, whenever somebody looks.
func (m metrics) watch(c *Controller) {
	if m.registry == nil {
		return
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "csi_tandem_open_attempts", Help: "Volumes that were asked for at the driver and have neither a certain outcome nor a PersistentVolume yet.",
	}, func() float64 { return float64(len(c.memory.unsettled())) }))
	if c.record == nil {
		return
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "csi_tandem_parked_attempts", Help: "Attempts on record that this process does nothing about any more: the driver could not say what became of them, or they are not understood.",
	}, func() float64 {
		_, parked := c.record.Len()
		return float64(parked)
	}))
}

func (m metrics) provisioned(claim *corev1.PersistentVolumeClaim, took time.Duration) {
	class, source := labelsOf(claim)
	m.total.WithLabelValues(class, source).Inc()
	m.durations.WithLabelValues(class, source).Observe(took.Seconds())
}

// failed counts under the name of the class while there is one: anybody who may make a claim can make up names, and each would have a series of
// its own for as long as the process runs.
func (m metrics) failed(claim *corev1.PersistentVolumeClaim) {
	if claim == nil {
		return
	}
	class, source := labelsOf(claim)
	if !m.exists(class) {
		class = ""
	}
	m.failures.WithLabelValues(class, source).Inc()
}

// askedAt is since when a claim waits for the driver, as far as the claim tells: with a node that the scheduler has
// selected it does not, since it may have waited for a pod before.
func askedAt(claim *corev1.PersistentVolumeClaim) time.Time {
	if claim.Annotations[wellknown.AnnSelectedNode] != "" {
		return time.Time{}
	}
	return claim.CreationTimestamp.Time
}

// labelsOf reads the fields that dashboards of such sidecars have always shown, and no annotations.
func labelsOf(claim *corev1.PersistentVolumeClaim) (class, source string) {
	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}
	if claim.Spec.DataSource != nil {
		source = claim.Spec.DataSource.Kind
	}
	return class, source
}
