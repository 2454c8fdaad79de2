// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/spelling"
)

// service is what leases say of the process that works for the driver.
type service int

const (
	// unread: leases may not be read, or nobody has said which driver it is.
	unread service = iota
	working
	// idle: there is a lease, and nobody has it.
	idle
	// unled: there is no lease. A process without leader election has none, so that this proves nothing.
	unled
)

// showSidecars tells which process works for the driver, by the lease that it leads with. Whoever may not list leases
// is told just that.
func (l *look) showSidecars(ctx context.Context, lease, program string) {
	l.lease, l.program = lease, program
	if l.Driver.Name == "" {
		return
	}
	var found []string
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", lease).String()}
	service := unled
	failed := l.client.apart(func() {
		_ = list(ctx, l, "", options, func(held *coordinationv1.Lease) {
			text, works := l.holds(held)
			found = append(found, text)
			if works {
				service = working
			}
		})
	})
	switch {
	case len(failed) > 0:
		l.note("Which process works for the driver is not shown: %s.", failed[0])
		return
	case len(found) > 0 && service == unled:
		service = idle
	}
	slices.Sort(found)
	l.report.Driver.Sidecars, l.service = found, service
}

// holds says of a lease who has it, and since when nobody has renewed it if that is too long.
func (l *look) holds(lease *coordinationv1.Lease) (text string, works bool) {
	name := lease.Namespace + "/" + lease.Name
	holder, renewed := ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{})
	age := l.Clock.Since(renewed.Time)
	switch lasts := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second; {
	case holder == "":
		l.ledUntil = maxTime(l.ledUntil, renewed.Add(lasts))
		return "nobody works: lease " + name + " has no holder", false
	case age > lasts:
		l.ledUntil = maxTime(l.ledUntil, renewed.Add(lasts))
		return fmt.Sprintf("nobody works: lease %s was renewed %s ago for the last time, by %s", name, span(age), strings.TrimSpace(holder)), false
	}
	return fmt.Sprintf("%s works: it has lease %s", holder, name), true
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// hear takes what a process has said for a sign of it, as long as it would have said something again by now. It is better than
// none, since one without leader election has no lease, or leaves that of another as it is.
func (l *look) hear(at time.Time) {
	if at.IsZero() || l.Clock.Since(at) >= 2*l.RetryMax {
		return
	}
	switch {
	case l.service == unled:
		l.service = unread
	case l.service == idle && at.After(l.ledUntil):
		l.service = unread
		l.report.Driver.Sidecars = append(l.report.Driver.Sidecars, fmt.Sprintf("but one works without leader election: it has spoken since, %s ago", span(l.Clock.Since(at))))
	}
}

// noteUnled tells that there is no lease, where nothing more certain was told.
func (l *look) noteUnled() {
	if l.service == unled && !l.Driver.Asked {
		l.note("No lease says that a %s works for driver %s (%s, in any namespace): either it runs without --leader-election, or it waits for rights or for its driver, or it does not run at all; %s.", l.program, l.Driver.Name, l.lease, itsLog)
	}
}

// itsLog is where a process that does nothing says why.
const itsLog = "its log and /readyz say which"

// inTree begins the names of provisioners that were once part of Kubernetes. Drivers serve them under names of their own.
const inTree = "kubernetes.io/"

// unserved tells that nobody would take the next step. What may not be read is not taken for missing. What somebody could choose
// instead, of the drivers that are known, is asked of choices; there is none for what exists and is of its driver for ever.
func (l *look) unserved(ctx context.Context, choices func(drivers) []string) []hindrance {
	name := l.Driver.Name
	switch {
	case name == "" || strings.HasPrefix(name, inTree):
		return nil
	case l.service == idle:
		return []hindrance{{
			why:    fmt.Sprintf("the %s of driver %s does not run: %s", l.program, name, strings.Join(l.report.Driver.Sidecars, "; ")),
			advice: []string{fmt.Sprintf("see why no %s leads with lease %s: whether its pods are there and run, and what they log", l.program, l.lease)},
		}}
	case l.service != unled || l.Driver.Asked:
		return nil
	}
	others, isSure := l.fetchDrivers(ctx)
	if !isSure || slices.Contains(others.known, name) || l.hasTraces(ctx) {
		return nil
	}
	l.service = unread // what is certain stands in place of the note
	h := hindrance{why: fmt.Sprintf("nothing shows that anybody serves driver %s: there is no lease %s in any namespace, no CSIDriver object of that name, and no CSINode lists it", name, l.lease)}
	h.advice = []string{fmt.Sprintf("run driver %s with the %s beside it, as deploy/%[2]s does: no other process takes this step; if one runs without --leader-election, its log and /readyz say what it waits for", name, l.program)}
	if choices != nil {
		h.advice = append(h.advice, choices(others)...)
	}
	return []hindrance{h}
}

// choices are those of who makes a claim: the driver of its class. What is made from something has to be of the driver of that.
func (l *claimLook) choices(others drivers) []string {
	var advice []string
	if meant := spelling.Nearest(l.Driver.Name, others.known); meant != "" {
		advice = append(advice, fmt.Sprintf("if driver %s is meant: name a class of that driver in a new claim, as neither the driver of a class nor the class of a claim can be changed", meant))
	}
	if from, _ := provision.SourceOf(l.claim); from == nil && len(others.here) > 0 {
		advice = append(advice, "or use a class of a driver that is here: "+few(others.here))
	}
	return advice
}

// drivers are those that the cluster tells of: known by a CSIDriver object or by a node, and here where a node has them. A CSIDriver object
// alone may be left from a driver that is gone, or may have come before it.
type drivers struct{ known, here []string }

// fetchDrivers lists the drivers, and says whether all of them could be read.
func (l *look) fetchDrivers(ctx context.Context) (found drivers, isSure bool) {
	known, here := map[string]bool{}, map[string]bool{}
	failed := l.client.apart(func() {
		_ = list(ctx, l, "", metav1.ListOptions{}, func(node *storagev1.CSINode) {
			for _, d := range node.Spec.Drivers {
				known[d.Name], here[d.Name] = true, true
			}
		})
		_ = list(ctx, l, "", metav1.ListOptions{}, func(d *storagev1.CSIDriver) { known[d.Name] = true })
	})
	return drivers{slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(here))}, len(failed) == 0
}
