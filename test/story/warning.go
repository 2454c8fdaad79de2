// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lastWarning is the newest Warning event about an object, for the one who waits; empty if there is none, or no answer.
func (s *Scene) lastWarning(ctx context.Context, name string) string {
	events, err := s.Stage.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "type=" + corev1.EventTypeWarning + ",involvedObject.name=" + name,
	})
	if err != nil || len(events.Items) == 0 {
		return ""
	}
	last := slices.MaxFunc(events.Items, func(a, b corev1.Event) int { return seen(a).Compare(seen(b)) })
	return fmt.Sprintf("%s: %s", last.Reason, last.Message)
}

// seen is when an event happened last: the two generations of the API write that into different fields.
func seen(e corev1.Event) time.Time {
	last := e.CreationTimestamp.Time
	if e.Series != nil {
		last = e.Series.LastObservedTime.Time
	}
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// warn shows a warning, unless it has been shown before.
func (s *Scene) warn(name, said string) {
	if s.warned == nil {
		s.warned = map[string]bool{}
	}
	if key := name + " " + said; !s.warned[key] {
		s.warned[key] = true
		s.Out.wipe()
		s.Out.quote("the last warning about "+name, said)
	}
}
