// SPDX-License-Identifier: Apache-2.0

package throttle

import "github.com/prometheus/client_golang/prometheus"

var (
	labels       = []string{"operation", "class"}
	limitDesc    = prometheus.NewDesc("csi_tandem_driver_calls_limit", "How many calls the driver is trusted with at once.", labels, nil)
	inFlightDesc = prometheus.NewDesc("csi_tandem_driver_calls_in_flight", "Calls that the driver has not answered yet.", labels, nil)
	waitingDesc  = prometheus.NewDesc("csi_tandem_driver_calls_waiting", "Calls that wait for their turn.", labels, nil)
	openDesc     = prometheus.NewDesc("csi_tandem_driver_calls_unsettled", "Objects that the driver may be at work on after the deadline of its call.", labels, nil)
)

// Describe implements prometheus.Collector.
func (d *Driver) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{limitDesc, inFlightDesc, waitingDesc, openDesc} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (d *Driver) Collect(out chan<- prometheus.Metric) {
	for _, op := range operations {
		d.gates[op].collect(out)
	}
}

func (g *gate) collect(out chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.flows {
		tell := func(desc *prometheus.Desc, value int) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), string(g.op), f.name)
		}
		tell(limitDesc, f.limit.now())
		tell(inFlightDesc, f.running)
		tell(waitingDesc, len(f.fresh)+len(f.again))
		tell(openDesc, len(f.open))
	}
}
