// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// moment is something that happens once to an object, which is named as the user named it.
type moment string

// The moments.
const (
	began       moment = "began"       // somebody asks for it; right before the request is sent
	written     moment = "written"     // the volume of a claim
	bound       moment = "bound"       // a claim
	ready       moment = "ready"       // a snapshot
	unmade      moment = "gone"        // a snapshot
	contentGone moment = "contentGone" // the content of a snapshot
	volumeGone  moment = "volumeGone"  // the volume of a claim
)

// eyes watch the cluster and remember when what happened first.
type eyes struct {
	mu   sync.Mutex
	seen map[moment]map[string]time.Time
	err  error
}

// watched is one kind of objects. The API server ends a watch whenever it likes, and at least once for a kind that it has
// learned a moment ago; it is then opened again where it ended, or at the beginning if the server does not remember that place.
// What went in between is not seen then, and whoever waits for it says so.
type watched struct {
	open func(metav1.ListOptions) (apiwatch.Interface, error)
	take func(apiwatch.EventType, any)
	at   string
}

// watch opens the eyes, until the context ends.
func watch(ctx context.Context, s *stage.Stage) (*eyes, error) {
	e := &eyes{seen: map[moment]map[string]time.Time{}}
	volumes, claims := s.Kube.CoreV1().PersistentVolumes(), s.Kube.CoreV1().PersistentVolumeClaims(namespace)
	snapshots, contents := s.Snapshots.SnapshotV1().VolumeSnapshots(namespace), s.Snapshots.SnapshotV1().VolumeSnapshotContents()
	for _, w := range []*watched{
		{open: func(o metav1.ListOptions) (apiwatch.Interface, error) { return volumes.Watch(ctx, o) }, take: e.volume},
		{open: func(o metav1.ListOptions) (apiwatch.Interface, error) { return claims.Watch(ctx, o) }, take: e.claim},
		{open: func(o metav1.ListOptions) (apiwatch.Interface, error) { return snapshots.Watch(ctx, o) }, take: e.snapshot},
		{open: func(o metav1.ListOptions) (apiwatch.Interface, error) { return contents.Watch(ctx, o) }, take: e.content},
	} {
		// Bookmarks keep the place fresh at which a watch is opened again, also of a kind that nothing happens to for long.
		opened, err := w.open(metav1.ListOptions{AllowWatchBookmarks: true})
		if err != nil {
			return nil, fmt.Errorf("opening a watch: %w", err)
		}
		go e.follow(ctx, w, opened)
	}
	return e, nil
}

func (e *eyes) follow(ctx context.Context, w *watched, opened apiwatch.Interface) {
	for {
		err := w.drain(opened)
		if err == nil && ctx.Err() == nil {
			opened, err = w.open(metav1.ListOptions{ResourceVersion: w.at, AllowWatchBookmarks: true})
		}
		if apierrors.IsResourceExpired(err) && ctx.Err() == nil {
			// All that is there is shown once more, and what is not new was noted before.
			opened, err = w.open(metav1.ListOptions{AllowWatchBookmarks: true})
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.err = fmt.Errorf("a watch ended, and what happened since was not seen: %w", err)
			return
		}
	}
}

// drain takes events until the watch ends.
func (w *watched) drain(opened apiwatch.Interface) error {
	defer opened.Stop()
	for event := range opened.ResultChan() {
		if event.Type == apiwatch.Error {
			return apierrors.FromObject(event.Object)
		}
		if object, err := meta.Accessor(event.Object); err == nil {
			w.at = object.GetResourceVersion()
		}
		if event.Type != apiwatch.Bookmark {
			w.take(event.Type, event.Object)
		}
	}
	return nil
}

func (e *eyes) volume(kind apiwatch.EventType, object any) {
	v, ok := object.(*corev1.PersistentVolume)
	if !ok || v.Spec.ClaimRef == nil || v.Spec.ClaimRef.Namespace != namespace {
		return
	}
	if kind == apiwatch.Deleted {
		e.note(volumeGone, v.Spec.ClaimRef.Name)
	} else {
		e.note(written, v.Spec.ClaimRef.Name)
	}
}

func (e *eyes) claim(kind apiwatch.EventType, object any) {
	if c, ok := object.(*corev1.PersistentVolumeClaim); ok && kind != apiwatch.Deleted && c.Status.Phase == corev1.ClaimBound {
		e.note(bound, c.Name)
	}
}

func (e *eyes) snapshot(kind apiwatch.EventType, object any) {
	v, ok := object.(*snapv1.VolumeSnapshot)
	switch {
	case !ok:
	case kind == apiwatch.Deleted:
		e.note(unmade, v.Name)
	case v.Status != nil && ptr.Deref(v.Status.ReadyToUse, false):
		e.note(ready, v.Name)
	}
}

func (e *eyes) content(kind apiwatch.EventType, object any) {
	if c, ok := object.(*snapv1.VolumeSnapshotContent); ok && kind == apiwatch.Deleted {
		e.note(contentGone, c.Spec.VolumeSnapshotRef.Name)
	}
}

// note remembers the first time.
func (e *eyes) note(what moment, name string) {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen[what] == nil {
		e.seen[what] = map[string]time.Time{}
	}
	if _, known := e.seen[what][name]; !known {
		e.seen[what][name] = now
	}
}

// at is when something happened, if it has.
func (e *eyes) at(what moment, name string) (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, ok := e.seen[what][name]
	return t, ok
}

// missing counts the objects to which something has not happened yet, and names one.
func (e *eyes) missing(what moment, names []string) (count int, one string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range names {
		if _, ok := e.seen[what][name]; !ok {
			count, one = count+1, name
		}
	}
	return count, one, e.err
}

// await waits until all that is named has happened to all objects.
func (b *bench) await(ctx context.Context, names []string, moments ...moment) error {
	for _, what := range moments {
		count, one := 0, ""
		err := b.until(ctx, 20*time.Millisecond, func() (bool, error) {
			var err error
			count, one, err = b.eyes.missing(what, names)
			return count == 0, err
		})
		if err != nil {
			return fmt.Errorf("waiting until %d objects are %s: %d are not, such as %s: %w", len(names), what, count, one, err)
		}
	}
	return nil
}
