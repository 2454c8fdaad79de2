// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// lastEvents is how many events of one object are shown.
const lastEvents = 5

// tell adds the last events of an object, and gives all of them, the last one last.
func (l *look) tell(ctx context.Context, obj kube.Object, kind string) []*corev1.Event {
	namespace := obj.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where the events of objects without namespace are
	}
	var found []*corev1.Event
	selector := fields.OneTermEqualSelector("involvedObject.uid", string(obj.GetUID())).String()
	failed := l.client.apart(func() {
		_ = list(ctx, l, namespace, metav1.ListOptions{FieldSelector: selector}, func(e *corev1.Event) { found = append(found, e) })
	})
	l.isDeaf = l.isDeaf || len(failed) > 0
	for _, f := range failed {
		l.note("Events of %s %s are not shown: %s.", kind, obj.GetName(), f)
	}
	slices.SortStableFunc(found, func(a, b *corev1.Event) int { return timeOf(a).Compare(timeOf(b)) })
	for _, e := range found[max(0, len(found)-lastEvents):] {
		at := timeOf(e)
		l.report.Events = append(l.report.Events, Event{
			Object: kind + " " + kube.IndexValue(kube.KeyOf(obj)), Time: at, Age: span(l.Clock.Since(at)), Type: e.Type,
			Reason: e.Reason, Message: e.Message, From: fromOf(e), Count: e.Count,
		})
	}
	return found
}

// fromOf is who wrote an event.
func fromOf(e *corev1.Event) string { return cmp.Or(e.Source.Component, e.ReportingController) }

// timeOf is when an event was last seen; which of its times is set depends on who wrote it.
func timeOf(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	default:
		return e.CreationTimestamp.Time
	}
}
