// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/controller/content"
	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/controller/volumesnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

const (
	binder      = "snapshotter (binding)"
	snapshotter = "snapshotter"
	kindContent = "VolumeSnapshotContent"
)

// Snapshotter is what the rooms of the snapshotter are told by flags.
type Snapshotter struct {
	Content content.Options
	Binding volumesnapshot.Options
	// LeaseNamespaces are where the lease of another binder may be.
	LeaseNamespaces []string
}

// snapshotLook is what was read about one snapshot.
type snapshotLook struct {
	*look
	rooms     Snapshotter
	snapshot  *snapv1.VolumeSnapshot
	content   *kube.Content
	claim     *corev1.PersistentVolumeClaim
	snapshots *kube.Store[*snapv1.VolumeSnapshot]
	contents  *kube.Store[*kube.Content]
	classes   *kube.Store[*snapv1.VolumeSnapshotClass]
	claims    *kube.Store[*corev1.PersistentVolumeClaim]
	// classWritten is when a class that may be meant was last changed.
	classWritten time.Time
}

// Snapshot explains what the snapshotter would do about a VolumeSnapshot and its content. The error means
// that there is nothing to explain.
func Snapshot(ctx context.Context, s Setting, rooms Snapshotter, namespace, name string) (*Report, error) {
	key := kube.Key{Namespace: namespace, Name: name}
	l := newSnapshotLook(s, rooms)
	found, err := fill(ctx, l.look, l.snapshots, key)
	if err != nil {
		return nil, fmt.Errorf("reading VolumeSnapshot %s: %w", kube.IndexValue(key), l.missing(ctx, wellknown.KindVolumeSnapshot, key, err))
	}
	l.snapshot = found
	l.readAround(ctx)
	l.describe()
	l.nameDriver(l.drivers(ctx)...)
	l.showSidecars(ctx, wellknown.SanitizeLease(wellknown.SnapshotterLease(l.Driver.Name)), snapshotter)
	l.hear(answeredAt(l.content))
	l.hear(statusWritten(l.snapshot))
	l.noteNamespace(ctx, namespace)
	l.askBinding(ctx)
	l.askContent(ctx)
	l.noteUnled()
	l.askSource(ctx)
	l.hold(l.snapshot, wellknown.KindVolumeSnapshot)
	if l.content != nil {
		l.hold(l.content, kindContent)
	}
	if l.claim != nil && kube.HasFinalizer(l.claim, wellknown.FinalizerSourceClaim) {
		l.hold(l.claim, kindClaim)
	}
	l.tell(ctx, l.snapshot, wellknown.KindVolumeSnapshot)
	if l.content != nil {
		l.tell(ctx, l.content, kindContent)
	}
	return l.report, nil
}

func newSnapshotLook(s Setting, rooms Snapshotter) *snapshotLook {
	return &snapshotLook{
		look: newLook(s), rooms: rooms, snapshots: kube.NewStore(kube.SnapshotIndexes()), contents: kube.NewStore(kube.ContentIndexes()),
		classes: kube.NewStore[*snapv1.VolumeSnapshotClass](nil), claims: kube.NewStore(kube.ClaimIndexes()),
	}
}

// readAround reads what the rooms of the snapshotter have in their caches. What is refused is remembered
// by the reader.
func (l *snapshotLook) readAround(ctx context.Context) {
	s := l.snapshot
	if name := binding.ContentName(s); name != "" {
		if found, err := fill(ctx, l.look, l.contents, kube.Key{Name: name}); err == nil {
			l.content = found
		}
	}
	if name := s.Spec.VolumeSnapshotClassName; name != nil {
		l.readClass(ctx, *name)
	} else {
		_ = list(ctx, l.look, "", metav1.ListOptions{}, l.showClass)
	}
	if l.content != nil {
		if name := l.content.Spec.VolumeSnapshotClassName; name != nil {
			l.readClass(ctx, *name)
		}
	}
	if name := s.Spec.Source.PersistentVolumeClaimName; name != nil {
		if found, err := fill(ctx, l.look, l.claims, kube.Key{Namespace: s.Namespace, Name: *name}); err == nil {
			l.claim = found
		}
	}
	if l.claim != nil && kube.HasFinalizer(l.claim, wellknown.FinalizerSourceClaim) {
		// Whether the claim is let go depends on its other snapshots.
		_ = fillAll(ctx, l.look, l.snapshots, s.Namespace)
	}
	if s.DeletionTimestamp != nil || kube.HasFinalizer(s, wellknown.FinalizerSnapshotAsSource) {
		_ = fillAll(ctx, l.look, l.claims, s.Namespace)
	}
}

func (l *snapshotLook) readClass(ctx context.Context, name string) {
	if class, err := kube.Fetch[*snapv1.VolumeSnapshotClass](ctx, l.client, kube.Key{Name: name}); err == nil { // the reader remembers what was refused
		l.showClass(class)
	}
}

func (l *snapshotLook) showClass(class *snapv1.VolumeSnapshotClass) {
	l.classes.Show(class)
	l.classWritten = maxTime(l.classWritten, lastWrite(class))
}

// drivers are the places that may tell the driver, the surest first.
func (l *snapshotLook) drivers(ctx context.Context) []Fact {
	var found []Fact
	if l.content != nil {
		found = append(found, Fact{"the VolumeSnapshotContent", l.content.Spec.Driver})
	}
	if name := l.snapshot.Spec.VolumeSnapshotClassName; name != nil {
		if class, ok := l.classes.Lookup(kube.Key{Name: *name}); ok {
			found = append(found, Fact{"the VolumeSnapshotClass", class.Driver})
		}
	}
	if l.Driver.Asked || l.Driver.Name != "" || len(found) > 0 || l.claim == nil || l.claim.Spec.VolumeName == "" {
		return found
	}
	if volume, err := kube.Fetch[*corev1.PersistentVolume](ctx, l.client, kube.Key{Name: l.claim.Spec.VolumeName}); err == nil {
		found = append(found, Fact{"the PersistentVolume of the claim", driverOf(volume)})
	}
	return found
}

// askBinding asks the room that binds.
func (l *snapshotLook) askBinding(ctx context.Context) {
	s, options := l.snapshot, l.rooms.Binding
	m := Machine{Program: binder, Object: Object{Kind: wellknown.KindVolumeSnapshot, Namespace: s.Namespace, Name: s.Name}}
	stance := volumesnapshot.NewStance(options.Bind, volumesnapshot.StanceDeps{
		Client: l.client, Clock: l.Clock, Namespaces: l.rooms.LeaseNamespaces,
	})
	scope, takesPart := stance.Scope()
	if !takesPart {
		l.unasked(m, fmt.Sprintf("Nothing: --bind-snapshots=%s leaves the binding to a snapshot-controller in the cluster.", options.Bind),
			"look at the log of the snapshot-controller, or run the snapshotter with --bind-snapshots=own")
		return
	}
	if options.Bind == volumesnapshot.Auto {
		if why := stance.FetchRival(ctx); why != "" {
			m.Object.State = append(m.Object.State, Fact{"binding", "left to others: " + why + ". What follows is what would be done without them"})
		}
		l.client.takeFailed() // a lease that may not be read is no sign, for the sidecar either
	}
	room := volumesnapshot.New(options, volumesnapshot.Deps{
		Client: l.client, Clock: l.Clock, DriverName: l.Driver.Name, Stance: stance,
		Snapshots: l.snapshots, Contents: l.contents, Classes: l.classes, Claims: l.claims,
		RetryStart: l.RetryStart, RetryMax: l.RetryMax,
	})
	in, steps, err := room.Look(ctx, reconcile.Key{Namespace: s.Namespace, Name: s.Name}, scope)
	if err != nil {
		m.Doubts = append(m.Doubts, err.Error())
	}
	if len(steps) == 0 {
		l.unasked(m, "Nothing: the VolumeSnapshot is gone by now.")
		return
	}
	last := steps[len(steps)-1]
	found := l.bindingHindrances(ctx, scope, last)
	if len(found) == 0 {
		found = l.untouched(steps)
	}
	l.add(m, anySteps(steps), adviseAgainst(found, adviseSnapshot(in, last)))
	l.hinder(last, found)
	if len(found) > 0 && (s.Status == nil || s.Status.Error == nil) {
		said := &l.report.Machines[len(l.report.Machines)-1].Sentence
		*said = strings.Replace(*said, "Cannot go on, says so in the status, and looks again by itself", "Could not go on, and would say so in the status", 1)
	}
	l.foresee(ctx, last)
}

// bindingHindrances are those of the program that binds. One that binds for its own driver only is the sidecar beside that, without which
// nothing at all is done, nor said in a status.
func (l *snapshotLook) bindingHindrances(ctx context.Context, scope snapshot.Scope, step any) []hindrance {
	switch step.(type) {
	case snapshot.Ignore, snapshot.Tell:
		return nil
	case snapshot.CreateContent:
		return l.unserved(ctx, l.choices(ctx))
	}
	if scope != snapshot.Own {
		return nil
	}
	return l.unserved(ctx, l.choices(ctx))
}

// choices are those of who makes a snapshot: its class has to be of the driver of the claim.
func (l *snapshotLook) choices(ctx context.Context) func(drivers) []string {
	if ofHandle := l.handleChoices(); ofHandle != nil {
		return ofHandle
	}
	return func(drivers) []string {
		name := ptr.Deref(l.snapshot.Spec.VolumeSnapshotClassName, "")
		class, ok := l.classes.Lookup(kube.Key{Name: name})
		if !ok || l.content != nil || l.claim == nil || l.claim.Spec.VolumeName == "" {
			return nil
		}
		var of string
		l.client.apart(func() {
			if volume, err := kube.Fetch[*corev1.PersistentVolume](ctx, l.client, kube.Key{Name: l.claim.Spec.VolumeName}); err == nil {
				of = driverOf(volume)
			}
		})
		if of == "" || of == class.Driver {
			return nil
		}
		return []string{fmt.Sprintf("claim %s is of driver %s: correct VolumeSnapshotClass %s if that is meant, kubectl patch volumesnapshotclass %[3]s --type=merge -p '{\"driver\":\"%[2]s\"}', and the snapshot goes on by itself",
			l.claim.Name, of, name)}
	}
}

// contentHindrances are those of a step that needs the sidecar beside the driver.
func (l *snapshotLook) contentHindrances(ctx context.Context, step any) []hindrance {
	switch s := step.(type) {
	case snapshot.Create, snapshot.Poll, snapshot.Delete:
		return append(l.unserved(ctx, l.handleChoices()), l.failure()...)
	case snapshot.Record:
		if s.Failure != "" && !isRefusal(s.Failure) {
			return slices.DeleteFunc(l.failure(), func(h hindrance) bool { return !isRefusal(h.why) })
		}
	}
	return nil
}

// askContent asks the room beside the driver.
func (l *snapshotLook) askContent(ctx context.Context) {
	c := l.content
	if c == nil {
		return
	}
	m := Machine{Program: snapshotter, Object: Object{Kind: kindContent, Name: c.Name, State: contentFacts(c)}}
	room := content.New(l.rooms.Content, content.Deps{
		Client: l.client, DriverName: l.Driver.Name, Capabilities: l.Driver.Capabilities, Clock: l.Clock,
		Contents: l.contents, Classes: l.classes, Snapshots: l.snapshots, RetryStart: l.RetryStart, RetryMax: l.RetryMax,
	})
	in, steps, err := room.Look(ctx, reconcile.Key{Name: c.Name})
	if err != nil {
		m.Doubts = append(m.Doubts, err.Error())
	}
	if len(steps) == 0 {
		l.unasked(m, "Nothing: the content is gone by now.")
		return
	}
	last := len(steps) - 1
	steps[last] = l.callWithSecret(ctx, in, steps[last])
	found := l.contentHindrances(ctx, steps[last])
	l.add(m, anySteps(steps), adviseAgainst(found, adviseContent(in, steps[last])))
	l.hinder(steps[last], found)
	if _, marked := c.Annotations[wellknown.AnnBeingCreated]; marked {
		l.note("%s %s carries the being-created mark: a create may be open in the running sidecar, and is repeated until the driver has said what became of it; until then its parameters stay as they are on record, whatever the class says.", kindContent, c.Name)
	}
}

// askSource asks the provisioner's room of sources about a snapshot that claims are restored from.
func (l *snapshotLook) askSource(ctx context.Context) {
	s := l.snapshot
	if !kube.HasFinalizer(s, wellknown.FinalizerSnapshotAsSource) {
		return
	}
	m := Machine{Program: provisioner, Object: Object{Kind: wellknown.KindVolumeSnapshot, Namespace: s.Namespace, Name: s.Name,
		State: []Fact{{"as", "the source of restores"}}}}
	room := source.New(*source.NewOptions(), source.Deps{
		Client: l.client, DriverName: l.Driver.Name, Clock: l.Clock, Claims: l.claims, Snapshots: l.snapshots,
		IsInUse: func(provision.Source) bool { return false },
	})
	step, err := room.LookSnapshot(ctx, reconcile.Key{Namespace: s.Namespace, Name: s.Name})
	if err != nil {
		m.Doubts = append(m.Doubts, err.Error())
	}
	l.add(m, []any{step}, nil)
	l.note("Restores that a running provisioner is making for claims that are gone by now are not visible here; they hold the finalizer too.")
}
