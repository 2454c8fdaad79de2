// SPDX-License-Identifier: Apache-2.0

package arch

import "testing"

var metricProofs = []proof{
	{"nobody is told of it", "metric", "pkg/kube/kube.go", "package kube\n\nvar x = \"csi_tandem_writes_total\"\n", "csi_tandem_writes_total is not in the table"},
	{"part of another text", "metric", "pkg/kube/kube.go", "package kube\n\nvar x = \"see csi_tandem_writes_total\"\n", ""},
	{"made by a test", "metric", "pkg/kube/kube_test.go", "package kube\n\nvar x = \"csi_tandem_writes_total\"\n", ""},
	{"there is none", "metric", "docs/status.md", "| `csi_tandem_writes_total` | verb, code | writes |\n", "nothing makes csi_tandem_writes_total"},
	{"a metric of others", "metric", "docs/status.md", "| `workqueue_depth` | name | keys |\n", ""},
}

func TestMetrics(t *testing.T) { prove(t, metricProofs) }
