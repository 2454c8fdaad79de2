// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/adopt"
	"github.com/csi-tandem/csi-tandem/pkg/driver"
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestImportWarns: a driver that nothing shows is told aside, so that what a dry run prints can still be applied; one that has
// answered is not doubted. Catches an import that does not look, and one that writes the warning into the YAML.
func TestImportWarns(t *testing.T) {
	const warning = "Warning: nothing shows that anybody serves driver nodrv"
	for _, row := range []struct{ asked, dryRun, warns bool }{{false, false, true}, {false, true, true}, {true, false, false}} {
		h := kit.New(t)
		h.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
		var out, aside bytes.Buffer
		o := &order{Order: adopt.Order{Handle: "h", Policy: "Retain"}, dryRun: row.dryRun}
		err := o.run(t.Context(), sidecar.Question{
			Namespace: "ns", Name: "old", Client: h.API, Out: &out, Aside: &aside,
			Driver: sidecar.Driver{Identity: driver.Identity{Name: "nodrv"}, Asked: row.asked},
		})
		if err != nil || strings.Contains(aside.String(), warning) != row.warns || strings.Contains(out.String(), "Warning") || !strings.Contains(out.String(), "nodrv") {
			t.Errorf("%+v: %v, said %q and aside %q", row, err, out.String(), aside.String())
		}
	}
}
