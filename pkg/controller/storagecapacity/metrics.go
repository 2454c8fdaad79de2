// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/csi-tandem/csi-tandem/pkg/capacity"
)

var (
	goalDesc = prometheus.NewDesc("csistoragecapacities_desired_goal",
		"CSIStorageCapacity objects that there should be: segments times classes.", nil, nil)
	currentDesc = prometheus.NewDesc("csistoragecapacities_desired_current",
		"CSIStorageCapacity objects that there should be and are.", nil, nil)
	obsoleteDesc = prometheus.NewDesc("csistoragecapacities_obsolete",
		"CSIStorageCapacity objects that there are and should not be; they are about to be deleted.", nil, nil)
	failingDesc = prometheus.NewDesc("csi_tandem_capacity_questions_failing",
		"Questions about the capacity of a segment to which the driver did not answer last time.", nil, nil)
	oldestDesc = prometheus.NewDesc("csi_tandem_capacity_oldest_answer_seconds",
		"Age of the oldest answer of the driver about the capacity of a segment; of the oldest question where there is none. Absent while nothing is published.", nil, nil)
	pollDesc = prometheus.NewDesc("csi_tandem_capacity_poll_interval_seconds",
		"How often the driver is asked about each segment without a reason. An answer that is much older than this is stale.", nil, nil)
)

// gauges count when they are asked, and look at each object once.
type gauges struct{ room *Controller }

// Describe implements prometheus.Collector.
func (g *gauges) Describe(descs chan<- *prometheus.Desc) {
	descs <- goalDesc
	descs <- currentDesc
	descs <- obsoleteDesc
	descs <- failingDesc
	descs <- oldestDesc
	descs <- pollDesc
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(metrics chan<- prometheus.Metric) {
	n := g.room.count()
	if since := g.room.memory.oldest(); !since.IsZero() {
		metrics <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, max(0, g.room.Clock.Since(since).Seconds()))
	}
	metrics <- prometheus.MustNewConstMetric(pollDesc, prometheus.GaugeValue, g.room.pace.poll.Seconds())
	for desc, value := range map[*prometheus.Desc]int{goalDesc: n.goal, currentDesc: n.current, obsoleteDesc: n.obsolete, failingDesc: n.failing} {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value))
	}
}

type counts struct{ goal, current, obsolete, failing int }

func (c *Controller) count() counts {
	classes, segments := c.memory.known()
	n := counts{goal: segments * len(classes.groupOf), failing: c.memory.countFailing()}
	filled := map[capacity.Slot]bool{}
	for _, object := range c.Objects.All() {
		if !c.base.IsOurs(object) {
			continue
		}
		slot, ok := capacity.SlotOf(object)
		if in, _ := c.memory.input(slot); !ok || !in.IsWanted || filled[slot] {
			n.obsolete++
			continue
		}
		filled[slot] = true
		n.current++
	}
	return n
}

// oldest is since when nothing newer is known of some segment; zero when nothing is asked.
func (m *memory) oldest() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	var oldest time.Time
	for _, a := range m.asks {
		if !a.since.IsZero() && (oldest.IsZero() || a.since.Before(oldest)) {
			oldest = a.since
		}
	}
	return oldest
}

func (m *memory) countFailing() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failing
}
