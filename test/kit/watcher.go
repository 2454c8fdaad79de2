// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// watcher sends the history from some version on, as far as it matches.
type watcher struct {
	api      *API
	resource kube.Resource
	matches  func(raw) bool
	initial  []watch.Event
	seen     int64
	life     int
	results  chan watch.Event
	done     chan struct{}
	once     sync.Once
}

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.once.Do(func() { close(w.done) }) }

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

// begin is called with the lock held.
func (w *watcher) begin(options metav1.ListOptions) error {
	a := w.api
	w.seen, w.life = a.version, a.broken
	wantsAll := options.SendInitialEvents != nil && *options.SendInitialEvents
	version := options.ResourceVersion
	if !wantsAll && version != "" && version != "0" {
		asked, err := strconv.ParseInt(version, 10, 64)
		if err != nil {
			return apierrors.NewBadRequest("invalid resource version " + version)
		}
		if asked < a.forgotten {
			return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", asked, a.forgotten))
		}
		w.seen = asked
		return nil
	}
	for _, at := range a.sortedKeys(w.resource.Plural) {
		if w.matches(a.objects[at]) {
			w.initial = append(w.initial, watch.Event{Type: watch.Added, Object: a.view(w.resource, at, a.objects[at])})
		}
	}
	if wantsAll && options.AllowWatchBookmarks {
		mark := w.resource.New()
		mark.SetResourceVersion(strconv.FormatInt(a.version, 10))
		mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		w.initial = append(w.initial, watch.Event{Type: watch.Bookmark, Object: mark})
	}
	return nil
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.results)
	ready := w.initial
	for {
		for _, e := range ready {
			select {
			case w.results <- e:
			case <-w.done:
				return
			case <-ctx.Done():
				return
			}
		}
		var changed <-chan struct{}
		var broken bool
		if ready, changed, broken = w.pending(); broken {
			return
		}
		if len(ready) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-w.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// pending takes the events that the watch has not sent yet.
func (w *watcher) pending() (ready []watch.Event, changed <-chan struct{}, broken bool) {
	a := w.api
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.life != a.broken {
		return nil, nil, true
	}
	for _, e := range a.history {
		if e.version <= w.seen || e.resource.Plural != w.resource.Plural {
			continue
		}
		if translated, ok := w.translate(e); ok {
			ready = append(ready, translated)
		}
	}
	w.seen = a.version
	return ready, a.changed, false
}

// translate turns a change into what a watch with a selector sees: an object that leaves the selection
// is deleted for it, one that enters is new.
func (w *watcher) translate(e event) (watch.Event, bool) {
	before := e.old != nil && w.matches(e.old)
	after := e.kind != watch.Deleted && w.matches(e.obj)
	kind := watch.Modified
	switch {
	case !before && !after:
		return watch.Event{}, false
	case !before:
		kind = watch.Added
	case !after:
		kind = watch.Deleted
	}
	shown := typed(w.resource, e.obj)
	if kind == watch.Deleted && e.old != nil {
		// As it was, with the version of the change, which is how the real server does it.
		shown = typed(w.resource, e.old)
		shown.SetResourceVersion(strconv.FormatInt(e.version, 10))
	}
	return watch.Event{Type: kind, Object: shown}, true
}
