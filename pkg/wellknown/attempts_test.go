// SPDX-License-Identifier: Apache-2.0

package wellknown_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// TestAttemptsName: the next process finds the record by its name, and each node has its own. Catches names after the lease, which
// two drivers may share: each would take up what the other has begun, with its own driver.
func TestAttemptsName(t *testing.T) {
	long := strings.Repeat("node.", 50) + "x"
	seen := map[string]bool{}
	for _, row := range []struct{ driver, node, want string }{
		{"tandem.csi.example", "", "tandem.csi.example-attempts"},
		{"tandem-csi.example", "", "tandem-csi.example-attempts"},
		{"tandem-csi-example", "", "tandem-csi-example-attempts"},
		{"tandem.csi.example", "worker-1.example", "tandem.csi.example-attempts-worker-1.example"},
		{"Vendor.x", "", "vendor-x-ec20b2e1-attempts"},
		{"vendor.X", "", ""},
		{"vendor_x-", "", ""},
		{"vendor.x", "", "vendor.x-attempts"},
		{"lease", long + "1", ""},
		{"lease", long + "2", ""},
	} {
		got := wellknown.AttemptsName(row.driver, row.node)
		if row.want != "" && got != row.want || seen[got] {
			t.Errorf("%s on %s: %s", row.driver, row.node, got)
		}
		seen[got] = true
		if wrong := validation.IsDNS1123Subdomain(got + "-7"); len(wrong) > 0 {
			t.Errorf("%s: %v", got, wrong)
		}
	}
}
