// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Content explains what the snapshotter would do about a VolumeSnapshotContent. The error means that there is
// nothing to explain.
func Content(ctx context.Context, s Setting, rooms Snapshotter, name string) (*Report, error) {
	l := newSnapshotLook(s, rooms)
	found, err := fill(ctx, l.look, l.contents, kube.Key{Name: name})
	if err != nil {
		return nil, fmt.Errorf("reading VolumeSnapshotContent %s: %w", name, l.missing(ctx, kindContent, kube.Key{Name: name}, err))
	}
	l.content = found
	if class := found.Spec.VolumeSnapshotClassName; class != nil {
		_, _ = fill(ctx, l.look, l.classes, kube.Key{Name: *class}) // the reader remembers what was refused
	}
	ref := found.Spec.VolumeSnapshotRef
	whose := fmt.Sprintf("VolumeSnapshot %s/%s: snapshotter explain -n %[1]s %[2]s", ref.Namespace, ref.Name)
	if s, err := fill(ctx, l.look, l.snapshots, kube.Key{Namespace: ref.Namespace, Name: ref.Name}); apierrors.IsNotFound(err) || err == nil && ref.UID != "" && s.UID != ref.UID {
		whose = fmt.Sprintf("VolumeSnapshot %s/%s, which does not exist (any more)", ref.Namespace, ref.Name)
		if found.DeletionTimestamp == nil {
			whose += fmt.Sprintf(": snapshotter import -n NAMESPACE NAME --content=%s gives the content to a new one", name)
		}
	}
	l.report.Object = Object{Kind: kindContent, Name: name, State: []Fact{
		{"age", span(l.Clock.Since(found.CreationTimestamp.Time))},
		{"snapshot", whose},
	}}
	l.nameDriver(Fact{"the VolumeSnapshotContent", found.Spec.Driver})
	l.showSidecars(ctx, wellknown.SanitizeLease(wellknown.SnapshotterLease(l.Driver.Name)), snapshotter)
	l.hear(answeredAt(found))
	l.askContent(ctx)
	l.noteUnled()
	l.hold(found, kindContent)
	l.tell(ctx, found, kindContent)
	return l.report, nil
}

// answeredAt is when the snapshotter of the driver last wrote down an error.
func answeredAt(c *kube.Content) time.Time {
	if c == nil || c.Status == nil || c.Status.Error == nil || c.Status.Error.Time == nil {
		return time.Time{}
	}
	return c.Status.Error.Time.Time
}
