// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func csiDriver(name string) kube.Object {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// TestWarnedOfNobody: a driver that nothing shows is told, since nobody else will ever tell. Catches an import that says nothing of a misspelt
// driver, and one that doubts a driver of which there is a sign, or which it may not look for.
func TestWarnedOfNobody(t *testing.T) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "external-snapshotter-leader-disk-example"}}
	other := *lease
	other.Name = "external-snapshotter-leader-other"
	order := Order{Namespace: kit.Namespace, Name: "old", Handle: "h", Driver: "disk.example", Policy: "Retain"}
	ofContent := Order{Namespace: kit.Namespace, Name: "again", Content: "kept"}
	for _, row := range []struct {
		name    string
		order   Order
		objects []kube.Object
		denied  string
		want    string
	}{
		{"nothing there", order, nil, "", "Warning: nothing shows that anybody serves driver disk.example: there is no lease external-snapshotter-leader-disk-example in any namespace, " +
			"no CSIDriver object of that name, and no CSINode lists it. Run the snapshotter"},
		{"misspelt", order, []kube.Object{csiDriver("disks.example"), &other}, "", "did you mean disks.example?"},
		{"misspelt, as a node knows", order, []kube.Object{kit.CSINode("n")}, "", "If it is of another driver, delete it and VolumeSnapshotContent " + contentName("disk.example", "h")},
		{"a content that was kept", ofContent, []kube.Object{kept()}, "", "serves driver " + kit.DriverName + ":"},
		{"a CSIDriver", order, []kube.Object{csiDriver("disk.example")}, "", ""},
		{"a lease", order, []kube.Object{lease}, "", ""},
		{"a node", ofContent, []kube.Object{kept(), kit.CSINode("n")}, "", ""},
		{"leases are hidden", order, nil, "leases", ""},
		{"nodes are hidden", order, nil, "csinodes", ""},
		{"drivers are hidden", order, nil, "csidrivers", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := world(t, row.objects...)
			if row.denied != "" {
				h.API.Deny("list", row.denied)
			}
			plan, err := FetchPlan(t.Context(), h.API, row.order)
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			if err := plan.Warn(t.Context(), h.API, &said); err != nil {
				t.Fatal(err)
			}
			if got := said.String(); (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
				t.Errorf("%q, want %q", got, row.want)
			}
			if w := writes(h); len(w) > 0 {
				t.Errorf("wrote %v", w)
			}
		})
	}
}
