// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
)

// showSidecars tells which process works for the driver, by the lease that it leads with. A process without
// leader election has none, so no lease proves nothing. Whoever may not list leases is told nothing.
func (l *look) showSidecars(ctx context.Context, lease, program string) {
	if l.Driver.Name == "" {
		return
	}
	var found []string
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", lease).String()}
	err := list(ctx, l, "", options, func(held *coordinationv1.Lease) { found = append(found, l.holds(held)) })
	if err != nil {
		l.client.takeFailed()
		return
	}
	if len(found) == 0 && !l.Driver.Asked {
		l.note("No lease says that a %s works for driver %s (%s, in any namespace): either it runs without --leader-election, or not at all.", program, l.Driver.Name, lease)
	}
	slices.Sort(found)
	l.report.Driver.Sidecars = found
}

// holds says of a lease who has it, and since when nobody has renewed it if that is too long.
func (l *look) holds(lease *coordinationv1.Lease) string {
	name := lease.Namespace + "/" + lease.Name
	holder, renewed := ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{})
	age := l.Clock.Since(renewed.Time)
	switch lasts := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second; {
	case holder == "":
		return "nobody works: lease " + name + " has no holder"
	case age > lasts:
		return fmt.Sprintf("nobody works: lease %s was renewed %s ago for the last time, by %s", name, span(age), strings.TrimSpace(holder))
	}
	return fmt.Sprintf("%s works: it has lease %s", holder, name)
}
