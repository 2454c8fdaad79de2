// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// patience is how long what takes a moment may take before its not being done tells something.
const patience = time.Minute

// hasTraces tells that a sidecar of the driver has been here, though neither a lease nor the driver's own objects tell of it: one that
// runs without leader election leaves its record of open attempts, and events about other objects.
func (l *look) hasTraces(ctx context.Context) bool {
	var last time.Time
	trace := ""
	see := func(at time.Time, format string, args ...any) {
		if trace == "" || at.After(last) {
			last, trace = at, fmt.Sprintf(format, args...)
		}
	}
	l.client.apart(func() { // without the right there is one sign less
		if l.program == provisioner {
			named := fields.OneTermEqualSelector("metadata.name", wellknown.AttemptsName(l.Driver.Name, "")+"-0").String()
			_ = list(ctx, l, "", metav1.ListOptions{FieldSelector: named}, func(c *corev1.ConfigMap) {
				see(lastWrite(c), "its record of open attempts is ConfigMap %s/%s", c.Namespace, c.Name)
			})
		}
		by := fields.OneTermEqualSelector("reportingComponent", l.component()).String()
		_ = list(ctx, l, "", metav1.ListOptions{FieldSelector: by}, func(e *corev1.Event) {
			see(timeOf(e), "it has told something of %s %s/%s", e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name)
		})
	})
	if trace != "" {
		l.note("A %s of driver %s has been here: %s, %s ago. Whether it still works, or has been overtaken by another, its log and /readyz say.", l.program, l.Driver.Name, trace, span(l.Clock.Since(last)))
	}
	return trace != ""
}

// component is the source of the sidecar's events.
func (l *look) component() string {
	if l.program == provisioner {
		return l.Driver.Name
	}
	return "csi-snapshotter " + l.Driver.Name
}

// silence tells that nothing has been done nor told about a claim for longer than it takes to begin. A process that waits for rights or
// for its driver takes no lease and tells nobody but its log.
func (l *claimLook) silence() []hindrance {
	since := lastWrite(l.claim)
	if l.class != nil {
		since = maxTime(since, lastWrite(l.class))
	}
	age := l.Clock.Since(since)
	if l.service == working || l.isDeaf || age < patience || !l.lastTold().IsZero() || len(l.failure()) > 0 {
		return nil
	}
	return []hindrance{{
		why:    fmt.Sprintf("no provisioner has told anything of the claim in %s, which takes a moment: the one of driver %s does not run, or it waits for rights or for the driver", span(age), l.Driver.Name),
		advice: []string{fmt.Sprintf("look at the log and /readyz of the provisioner of driver %s: they name what it waits for, and the rights that it lacks", l.Driver.Name)},
	}}
}
