// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/capacity"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// ofLack is the key of the question whether there is anything to publish at all.
const ofLack types.UID = "lack"

// lackAfter is when that is asked first: at the start of a cluster nodes register a little later. lackEvery is how often then.
const lackAfter, lackEvery = 10 * time.Second, time.Minute

// Lack says why nothing is published, and what would help; it is empty where something is, and before the work begins.
func (c *Controller) Lack() string {
	if !c.memory.hasBegun() {
		return ""
	}
	classes, segments := c.memory.known()
	stock := capacity.Stock{Driver: c.DriverName, Segments: segments, Published: len(classes.groupOf)}
	stock.Nodes, stock.Keys = c.Topology.Registered()
	for _, class := range c.Classes.All() {
		if class.Provisioner == c.DriverName {
			stock.Classes++
		}
	}
	return capacity.Lack(stock)
}

// tellLack tells when it has changed what is missing: somebody has switched publishing on, and would look for objects that
// do not come. No object stands for what is told here, so that the log has to say it.
func (c *Controller) tellLack(ctx context.Context) reconcile.Result {
	if c.memory.seekLack() {
		return reconcile.Result{After: lackAfter}
	}
	lack := c.Lack()
	if before := c.memory.setLack(lack); lack != before {
		if lack == "" {
			klog.FromContext(ctx).Info("Storage capacity is published from now on")
		} else {
			klog.FromContext(ctx).Info("No storage capacity is published", "why", lack)
		}
	}
	return reconcile.Result{After: lackEvery}
}

// seekLack tells whether it is the first time that something is to be looked for.
func (m *memory) seekLack() (first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first, m.lackSought = !m.lackSought, true
	return first
}

// setLack notes what was missing last, and gives what was before.
func (m *memory) setLack(lack string) (before string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, m.lack = m.lack, lack
	return before
}
