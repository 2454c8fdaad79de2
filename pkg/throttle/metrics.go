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
	for _, f := range d.Flows() {
		tell := func(desc *prometheus.Desc, value int) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), f.Operation, f.Class)
		}
		tell(limitDesc, f.Limit)
		tell(inFlightDesc, f.InFlight)
		tell(waitingDesc, f.Waiting)
		tell(openDesc, f.Unsettled)
	}
}

// Flow is what is under way with the calls of one operation and class.
type Flow struct {
	Operation, Class string
	// Limit is how many the driver is trusted with, InFlight how many it has not answered, Waiting how many wait for
	// their turn, and Unsettled how many objects it may be at work on without a call.
	Limit, InFlight, Waiting, Unsettled int
}

// Flows tells of all that were of use lately, which are few.
func (d *Driver) Flows() []Flow {
	var flows []Flow
	for _, op := range operations {
		flows = d.gates[op].appendFlows(flows)
	}
	return flows
}

func (g *gate) appendFlows(flows []Flow) []Flow {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.flows {
		flows = append(flows, Flow{string(g.op), f.name, f.limit.now(), f.running, len(f.fresh) + len(f.again), len(f.open)})
	}
	return flows
}
