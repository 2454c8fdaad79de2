// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
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
)

// gauges count when they are asked, and look at each object once.
type gauges struct{ room *Controller }

// Describe implements prometheus.Collector.
func (g *gauges) Describe(descs chan<- *prometheus.Desc) {
	descs <- goalDesc
	descs <- currentDesc
	descs <- obsoleteDesc
	descs <- failingDesc
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(metrics chan<- prometheus.Metric) {
	n := g.room.count()
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

func (m *memory) countFailing() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failing
}
