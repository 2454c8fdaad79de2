// SPDX-License-Identifier: Apache-2.0

package driver

import "github.com/kubernetes-csi/csi-lib-utils/metrics"

// NewMetrics makes the recorder of csi_sidecar_operations_seconds, in a registry of its own. When the
// process started is told elsewhere.
func NewMetrics() metrics.CSIMetricsManager {
	return metrics.NewCSIMetricsManagerWithOptions("", metrics.WithProcessStartTime(false))
}
