// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// Recorder tells users what happened to an object, as events. It never blocks and never fails: an event
// is a courtesy, and must not hold up the work that it speaks of.
type Recorder interface {
	// Normal tells of progress or of waiting.
	Normal(obj Object, reason, message string)
	// Warning tells of something that somebody should look at.
	Warning(obj Object, reason, message string)
	// Shared is a Warning to which several processes come alike, each for itself: it is there once.
	Shared(obj Object, reason, message string)
}

const (
	// eventQueue bounds the events that wait to be written; what comes when it is full is dropped.
	eventQueue = 4096
	// eventMemory bounds how many objects are remembered for de-duplication.
	eventMemory = 8192
	// eventRepeat is how long the same event of the same object is not told again: as long as the API
	// server keeps events by default.
	eventRepeat = time.Hour
	// eventTries is how often one event is sent.
	eventTries = 3
	// maxEventMessage is the API's limit for the message of an event, in bytes.
	maxEventMessage = 1024
)

// told is what is remembered of an event: a digest of its message, and when it was told, in seconds. Thousands are
// remembered, so neither texts nor UIDs are.
type told struct {
	message uint64
	at      int64
}

func digest(texts ...string) uint64 {
	h := fnv.New64a()
	for _, text := range texts {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// EventWriter is the Recorder that writes to the API server. Each cause is written once: the same
// message for the same object and reason is not repeated while the API server still has it.
type EventWriter struct {
	client    Client
	component string
	instance  string
	clock     clock.Clock
	queue     chan *corev1.Event

	mu   sync.Mutex
	last map[uint64]told
	// stamp makes event names differ even when the clock does not.
	stamp int64
}

// NewEventWriter makes a recorder; component is what users see as the source of the events, instance
// names the process.
func NewEventWriter(c Client, component, instance string, clk clock.Clock) *EventWriter {
	return &EventWriter{
		client: c, component: component, instance: instance, clock: clk,
		queue: make(chan *corev1.Event, eventQueue), last: map[uint64]told{},
	}
}

// Normal implements Recorder.
func (w *EventWriter) Normal(obj Object, reason, message string) {
	w.record(obj, corev1.EventTypeNormal, reason, message)
}

// Warning implements Recorder.
func (w *EventWriter) Warning(obj Object, reason, message string) {
	w.record(obj, corev1.EventTypeWarning, reason, message)
}

// Shared implements Recorder. Whoever comes to the same gives the event the same name, and the API server takes one.
func (w *EventWriter) Shared(obj Object, reason, message string) {
	w.record(obj, corev1.EventTypeWarning, reason, message, nameShared)
}

func (w *EventWriter) record(obj Object, kind, reason, message string, edits ...func(e *corev1.Event, before uint64)) {
	message = shorten(message)
	before, isNew := w.isNew(digest(string(obj.GetUID()), reason), message)
	if !isNew {
		return
	}
	event := w.build(obj, kind, reason, message)
	for _, edit := range edits {
		edit(event, before)
	}
	select {
	case w.queue <- event:
	default: // the API server is far behind; objects and metrics still tell the state
		w.untell(event)
	}
}

// nameShared makes the name of what is told and of what, without anything of who tells it or when. What was told before is in it, so that
// what becomes true again is told again.
func nameShared(e *corev1.Event, before uint64) {
	e.Name = fmt.Sprintf("%.230s.%x", e.InvolvedObject.Name, digest(string(e.InvolvedObject.UID), e.Reason, e.Message, strconv.FormatUint(before, 36)))
}

// minEventCause is what is left at least of what happened, so that what helps is whole.
const minEventCause = 64

// shorten makes a message that the API takes: names are long, and drivers say what they like, at any length. What helps ends a
// message, after a semicolon, and half a command is of no use: as much of it as there is room for stays, and what happened is cut.
func shorten(message string) string {
	message = strings.ToValidUTF8(message, "?")
	if len(message) <= maxEventMessage {
		return message
	}
	const gap = "..."
	end := message[len(message)-(maxEventMessage-minEventCause-len(gap)):]
	if _, whole, found := strings.Cut(end, "; "); found {
		end = "; " + whole
	} else {
		end = ""
	}
	// Cutting may split the last character.
	return strings.ToValidUTF8(message[:maxEventMessage-len(gap)-len(end)], "") + gap + end
}

// isNew tells whether a message is to be told, and gives what was told before of the same object for the same reason, if anything was.
func (w *EventWriter) isNew(key uint64, message string) (before uint64, isNew bool) {
	now, said := w.clock.Now().Unix(), digest(essence(message))
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.last[key]
	if ok && last.message == said && now-last.at < int64(eventRepeat/time.Second) {
		return last.message, false
	}
	if len(w.last) >= eventMemory {
		w.makeRoom(now)
	}
	w.last[key] = told{said, now}
	return last.message, true
}

// untell forgets that an event was told which the API server does not have.
func (w *EventWriter) untell(event *corev1.Event) {
	key, said := digest(string(event.InvolvedObject.UID), event.Reason), digest(essence(event.Message))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last[key].message == said {
		delete(w.last, key)
	}
}

// makeRoom forgets what is old, and else everything: forgetting costs a repeated event, remembering all costs memory.
func (w *EventWriter) makeRoom(now int64) {
	maps.DeleteFunc(w.last, func(_ uint64, t told) bool { return now-t.at >= int64(eventRepeat/time.Second) })
	if len(w.last) >= eventMemory/2 {
		w.last = map[uint64]told{}
	}
}

func (w *EventWriter) nextStamp(now time.Time) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stamp = max(w.stamp+1, now.UnixNano())
	return w.stamp
}

// essence looks past the request ids and times that drivers put into their errors. In our own words a number
// tells something: another node, another size.
func essence(message string) string {
	if fault.IsFromDriver(message) {
		return fault.Essence(message)
	}
	return message
}

func (w *EventWriter) build(obj Object, kind, reason, message string) *corev1.Event {
	now := w.clock.Now()
	namespace := obj.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	reference := corev1.ObjectReference{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}
	if r, ok := ResourceFor(obj); ok {
		reference.Kind, reference.APIVersion = r.Kind, r.GroupVersion().String()
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("%.230s.%x", obj.GetName(), w.nextStamp(now)),
		},
		InvolvedObject: reference,
		Type:           kind, Reason: reason, Message: message,
		Source:              corev1.EventSource{Component: w.component},
		ReportingController: w.component, ReportingInstance: w.instance,
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now), Count: 1,
	}
}

// Run writes events until the context ends, then the one in hand and those still waiting as long as
// drain allows.
func (w *EventWriter) Run(ctx context.Context, drain time.Duration) {
	for {
		select {
		case event := <-w.queue:
			if w.write(ctx, event) || ctx.Err() == nil {
				continue
			}
			w.finish(ctx, drain, event)
		case <-ctx.Done():
			w.finish(ctx, drain)
		}
		return
	}
}

func (w *EventWriter) finish(ctx context.Context, drain time.Duration, inHand ...*corev1.Event) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	for _, event := range inHand {
		w.write(last, event)
	}
	w.flush(last)
}

func (w *EventWriter) flush(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case event := <-w.queue:
			w.write(ctx, event)
		default:
			return
		}
	}
}

// write tells whether the event needs no further try.
func (w *EventWriter) write(ctx context.Context, event *corev1.Event) bool {
	var err error
	for try := range eventTries {
		if _, err = Create(ctx, w.client, event); err == nil || apierrors.IsAlreadyExists(err) {
			return true
		}
		if refused(err) || ctx.Err() != nil || try == eventTries-1 {
			break
		}
		select {
		case <-ctx.Done():
		case <-w.clock.After(time.Duration(try+1) * time.Second):
		}
	}
	if !refused(err) {
		w.untell(event)
	}
	klog.FromContext(ctx).V(2).Info("event not written", "reason", event.Reason, "object", event.InvolvedObject.Name, "err", err)
	return false
}

// refused tells the answers that do not change with trying: no right, a namespace that is going, a
// server that does not take the event.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
