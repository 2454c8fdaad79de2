// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestRecordFullOfParked: the record is full of entries that nobody here understands. A new claim is told once how many they are and what to do
// about them, the driver is asked for nothing, and no entry goes; once a person has taken one off, the claim goes on by itself. Catches a room
// that makes room by forgetting one of them, with the volume that it speaks of, and one that calls without a record.
func TestRecordFullOfParked(t *testing.T) {
	h := world(t)
	object := func(i int) kube.Key {
		return kube.Key{Namespace: recordKey.Namespace, Name: fmt.Sprintf("driver-attempts-%d", i)}
	}
	left := func() (n int) {
		for i := range 8 {
			c, _ := kit.Read[*corev1.ConfigMap](h.API, object(i))
			n += len(c.Data) - 1
		}
		return n
	}
	for i := range 8 {
		h.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object(i).Namespace, Name: object(i).Name}, Data: map[string]string{
			"epoch": "1 old", fmt.Sprintf("of-claim-%d", i): "\n{\"version\":9," + strings.Repeat(" ", 520<<10) + "}",
		}})
	}
	h.Put(kit.Claim("data"))
	h.Horizon = 10 * time.Minute
	c := startRecorded(h)
	h.Settle()
	if n := left(); n != 8 || len(requests(h)) != 0 {
		t.Errorf("%d entries are left, and %d calls were made", n, len(requests(h)))
	}
	told := slices.DeleteFunc(h.Log.Lines(), func(l string) bool { return !strings.Contains(l, "event default/data") })
	if len(told) == 0 || !strings.Contains(told[0], "the record of open attempts is full, and 8 of its entries are parked") ||
		!strings.Contains(told[0], "take the entries of those that are dealt with out of the ConfigMaps driver-attempts-0 to -7 in namespace home") || len(slices.Compact(told)) != 1 {
		t.Errorf("the claim is told %q", told)
	}
	kit.Edit(h.API, object(4), func(c *corev1.ConfigMap) { delete(c.Data, "of-claim-4") })
	if err := c.Sweep(h.Ctx); err != nil {
		t.Fatal(err)
	}
	h.Settle()
	if n := left(); n != 7 || len(requests(h)) != 1 || len(kit.All[*corev1.PersistentVolume](h.API)) != 1 {
		t.Errorf("%d entries are left, %d calls\n%s", n, len(requests(h)), h.Trace())
	}
}
