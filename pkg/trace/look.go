// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"sync"
	"time"
)

// Operation is what goes on with an object.
type Operation string

// The operations; each has a trace of its own.
const (
	Create  Operation = "create"
	Delete  Operation = "delete"
	Release Operation = "release"
)

// Subject is the object that a look is about.
type Subject struct {
	Kind, Namespace, Name, UID string
	// Of is the UID of the object whose trace this one is in; empty means its own.
	Of        string
	Operation Operation
}

// Look is one look at a key, from the moment a worker takes it to the result. Most looks find nothing to do, at a start
// thousands of them: a look has a span only once something was asked or written, or when it failed.
type Look struct {
	tracer *Tracer
	name   string
	begun  time.Time

	mu      sync.Mutex
	subject Subject
	step    string
	root    *Record
	sampled bool
	over    bool
}

type (
	// looking is how the look finds its way to those who work for it.
	looking struct{}
	// within is how the span of a request does.
	within struct{}
)

// Begin begins a look. It is nil when nothing is traced.
func Begin(ctx context.Context, queue, namespace, name string) (context.Context, *Look) {
	t, ok := ctx.Value(tracing{}).(*Tracer)
	if !ok {
		return ctx, nil
	}
	l := &Look{tracer: t, name: "reconcile " + queue, begun: t.clock.Now(), subject: Subject{Namespace: namespace, Name: name}}
	return context.WithValue(ctx, looking{}, l), l
}

// IsTraced tells whether there is anything to say to a look.
func IsTraced(ctx context.Context) bool { return lookOf(ctx) != nil }

func lookOf(ctx context.Context) *Look {
	l, _ := ctx.Value(looking{}).(*Look)
	return l
}

// About says which object the look in hand is about. It comes before the first request: the first object decides whose trace
// it is.
func About(ctx context.Context, s Subject) {
	l := lookOf(ctx)
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subject.UID == "" && l.root == nil {
		l.subject = s
	}
}

// Chose notes what was last decided about the key in hand.
func Chose(ctx context.Context, step string) {
	if l := lookOf(ctx); l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.step = step
	}
}

// End ends the look. Why is a word for the cause of a failure, and empty when it went well.
func (l *Look) End(why string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if why != "" {
		l.open()
	}
	l.over = true
	if l.root == nil || !l.sampled {
		return
	}
	done := *l.root
	done.Attributes = append(l.attributes(), texts([][2]string{{"csi_tandem.step", l.step}})...)
	done.End, done.Failed = l.tracer.clock.Now(), why
	l.tracer.take(done)
}

// open gives the look its span, from its beginning on; the lock is held.
func (l *Look) open() {
	if l.root == nil && !l.over {
		id := l.tracer.ids.trace(l.subject)
		l.sampled = l.tracer.share.has(id)
		l.root = &Record{TraceID: id, ID: l.tracer.ids.span(), Name: l.name, Begun: l.begun}
	}
}

func (l *Look) attributes() []Attribute {
	driver := ""
	if name := l.tracer.driver.Load(); name != nil {
		driver = *name
	}
	return texts([][2]string{
		{"k8s.object.kind", l.subject.Kind}, {"k8s.namespace.name", l.subject.Namespace}, {"k8s.object.name", l.subject.Name},
		{"k8s.object.uid", l.subject.UID}, {"csi_tandem.operation", string(l.subject.Operation)}, {"csi.driver.name", driver},
	})
}

// texts drops what is not known.
func texts(pairs [][2]string) []Attribute {
	var list []Attribute
	for _, pair := range pairs {
		if pair[1] != "" {
			list = append(list, Attribute{Key: pair[0], Text: pair[1]})
		}
	}
	return list
}

// Span is one request within a look. The zero value is none, and does nothing.
type Span struct {
	look   *Look
	record *Record
}

// Start begins a span for a request of the look in hand. Without a look, as for leases and events, there is none, and neither
// for what goes on after a look that did nothing.
func Start(ctx context.Context, name string) (context.Context, Span) {
	l := lookOf(ctx)
	if l == nil {
		return ctx, Span{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open()
	if l.root == nil {
		return ctx, Span{}
	}
	r := &Record{
		TraceID: l.root.TraceID, ID: l.tracer.ids.span(), Parent: l.root.ID, Name: name, IsRequest: true, Begun: l.tracer.clock.Now(),
	}
	if above, ok := ctx.Value(within{}).(*Record); ok && above.TraceID == r.TraceID {
		r.Parent = above.ID
	}
	return context.WithValue(ctx, within{}, r), Span{l, r}
}

// IsNone tells that nothing has to be found out for the span.
func (s Span) IsNone() bool { return s.record == nil }

// Set notes a text; an empty one is not noted.
func (s Span) Set(key, value string) {
	if s.record != nil && value != "" {
		s.record.Attributes = append(s.record.Attributes, Attribute{Key: key, Text: value})
	}
}

// SetNumber notes a number.
func (s Span) SetNumber(key string, value int) {
	if s.record != nil {
		s.record.Attributes = append(s.record.Attributes, Attribute{Key: key, Number: value})
	}
}

// End ends the span. Why is a word for the cause of a failure, and empty when it went well.
func (s Span) End(why string) {
	if s.record == nil || !s.look.sampled {
		return
	}
	s.record.End, s.record.Failed = s.look.tracer.clock.Now(), why
	s.look.tracer.take(*s.record)
}

// Parent is what the other side of a request needs to join the trace: the value of W3C Trace Context's traceparent. Outside of a
// span it is empty.
func Parent(ctx context.Context) string {
	l := lookOf(ctx)
	r, ok := ctx.Value(within{}).(*Record)
	if l == nil || !ok {
		return ""
	}
	flags := "-00"
	if l.sampled {
		flags = "-01"
	}
	return "00-" + r.TraceID.String() + "-" + r.ID.String() + flags
}
