// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/spelling"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Warn tells of a driver that nothing shows: an import for it is written all the same, since its snapshotter may come later, and then
// nobody says a word about the VolumeSnapshot. What may not be read is not taken for missing.
func (p *Plan) Warn(ctx context.Context, c kube.Client, out io.Writer) error {
	driver := p.driver()
	if driver == "" {
		return nil
	}
	lease := wellknown.SanitizeLease(wellknown.SnapshotterLease(driver))
	known, err := fetchDrivers(ctx, c, driver, lease)
	if err != nil || slices.Contains(known, driver) {
		return nil
	}
	meant := ""
	if near := spelling.Nearest(driver, known); near != "" {
		meant = fmt.Sprintf("did you mean %s? ", near)
	}
	return tell(out, "Warning: nothing shows that anybody serves driver %s: there is no lease %s in any namespace, no CSIDriver object of that name, and no CSINode lists it. "+
		"%sRun the snapshotter beside that driver: until then nothing is said about VolumeSnapshot %s. If it is of another driver, "+
		"delete it and VolumeSnapshotContent %s, as far as they are there, and import it with that one's --driver-name or --class",
		driver, lease, meant, kube.IndexValue(p.order.key()), p.content)
}

// driver is that of what is written, empty when that is nothing.
func (p *Plan) driver() string {
	switch {
	case p.create != nil:
		return p.create.Spec.Driver
	case p.free != nil:
		return p.free.Spec.Driver
	}
	return ""
}

// fetchDrivers lists the drivers that CSIDriver objects and nodes tell of, and one that holds a lease.
func fetchDrivers(ctx context.Context, c kube.Client, driver, lease string) ([]string, error) {
	known := map[string]bool{}
	err := each(ctx, c, metav1.ListOptions{}, func(d *storagev1.CSIDriver) { known[d.Name] = true })
	if err != nil || known[driver] {
		return []string{driver}, err
	}
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", lease).String()}
	if err := each(ctx, c, named, func(*coordinationv1.Lease) { known[driver] = true }); err != nil {
		return nil, err
	}
	err = each(ctx, c, metav1.ListOptions{}, func(n *storagev1.CSINode) {
		for _, d := range n.Spec.Drivers {
			known[d.Name] = true
		}
	})
	return slices.Sorted(maps.Keys(known)), err
}
