// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/spelling"
)

// failure is what the snapshotter has written down of a content that is to be tried again, unless it is an answer of the driver, which has
// advice of its own, or something that is missing, which was looked for anew.
func (l *snapshotLook) failure() []hindrance {
	status := l.content.Status
	if status == nil || status.Error == nil || status.Error.Message == nil {
		return nil
	}
	message := *status.Error.Message
	if fault.IsFromDriver(message) || strings.Contains(message, "not found") || strings.Contains(message, "can not find") {
		return nil
	}
	when := ""
	if at := answeredAt(l.content); !at.IsZero() {
		when = fmt.Sprintf(", %s ago", span(l.Clock.Since(at)))
	}
	what, remedy, _ := strings.Cut(message, "; ")
	if remedy == "" {
		remedy = "docs/operations.md says what helps against that"
	}
	return []hindrance{{why: fmt.Sprintf("the snapshotter could not go on when it last tried%s: %s", when, what), advice: []string{remedy}}}
}

// handleChoices are those of who has imported a snapshot, nil for any other: its driver may be named wrongly, and cannot be changed.
func (l *snapshotLook) handleChoices() func(drivers) []string {
	c := l.content
	if c == nil || c.Spec.Source.SnapshotHandle == nil || c.DeletionTimestamp != nil {
		return nil
	}
	return func(others drivers) []string {
		meant := spelling.Nearest(c.Spec.Driver, others.known)
		if meant == "" {
			meant = "DRIVER"
		}
		return []string{fmt.Sprintf("if the snapshot is of another driver, that cannot be changed here: %s",
			importAnew(&c.VolumeSnapshotContent, fmt.Sprintf("%s --driver-name=%s --deletion-policy=%s", *c.Spec.Source.SnapshotHandle, meant, c.Spec.DeletionPolicy)))}
	}
}

// untouched tells that nobody has done what takes a moment where somebody binds snapshots. A program without the right to bind leaves it
// to others, and nothing at the snapshot says so.
func (l *snapshotLook) untouched(steps []snapshot.SnapshotStep) []hindrance {
	since := lastWrite(l.snapshot)
	if at := l.snapshot.DeletionTimestamp; at != nil {
		since = maxTime(since, at.Time)
	}
	if l.content != nil {
		since = maxTime(since, lastWrite(l.content))
	}
	if l.claim != nil {
		since = maxTime(since, lastWrite(l.claim))
	}
	since = maxTime(since, l.classWritten)
	age := l.Clock.Since(since)
	if age < patience || !writes(steps) {
		return nil
	}
	return []hindrance{{
		why: fmt.Sprintf("nobody has done this in %s, which takes a moment: no program binds snapshots, or the one that could has no right to, or stands back", span(age)),
		advice: []string{fmt.Sprintf("look at the log and /readyz of the snapshotter of driver %s: they say whether it binds, and name the rights that it lacks, which deploy/pair/binding.yaml has; or at the snapshot-controller where that binds",
			named(l.Driver.Name))},
	}}
}

// writes tells that one of the steps is done as soon as somebody looks at the snapshot.
func writes(steps []snapshot.SnapshotStep) bool {
	for _, step := range steps {
		switch step.(type) {
		case snapshot.Protect, snapshot.ProtectSource, snapshot.ReleaseSource, snapshot.CreateContent, snapshot.ProtectContent, snapshot.Bind,
			snapshot.CopyStatus, snapshot.MarkContent, snapshot.DeleteContent, snapshot.Release:
			return true
		}
	}
	return false
}

// statusWritten is when a snapshotter of this project last wrote the status of a snapshot.
func statusWritten(s *snapv1.VolumeSnapshot) time.Time {
	last := metav1.Time{}
	for _, entry := range s.ManagedFields {
		if entry.Subresource == "status" && entry.Manager == snapshotter && entry.Time != nil && entry.Time.After(last.Time) {
			last = *entry.Time
		}
	}
	return last.Time
}
