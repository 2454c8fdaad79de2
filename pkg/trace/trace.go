// SPDX-License-Identifier: Apache-2.0

// Package trace owns the spans of OpenTelemetry: whose trace a piece of work belongs to, how a span begins and ends, and the
// way to the collector. What is traced of a look at a key is the look itself, its requests to the API server and its calls of
// the driver, which gets the trace along.
//
// It must not know Kubernetes nor the driver, and spans hold names, ids and codes only: no secret, no parameter, and no words
// of others, which may hold either.
//
// It stands beside every walk. Without a collector in the environment the context carries no Tracer, and all that is left of a
// span is a look into the context.
//
// It is made without the SDK of OpenTelemetry. That takes half a megabyte of each idle process, whether or not it ever traces,
// and its exporters take more for all messages of OTLP. What is needed of them is little: spans have one of two kinds and no
// links, the environment is read by the same names and meanings, and the few messages of OTLP are written field by field.
package trace

import (
	"context"
	"encoding/hex"
	"io"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Options are what a Tracer needs besides the environment.
type Options struct {
	// Program and Version are who traces, and Instance which of several.
	Program, Version, Instance string
	// Clock tells when something began and ended.
	Clock clock.Clock
	// Chance is what the ids of spans are made from.
	Chance io.Reader
	// Complain hears once that spans get lost, and nil once that they are taken again.
	Complain func(error)
}

// Record is a span that has ended.
type Record struct {
	TraceID    TraceID
	ID, Parent SpanID
	Name       string
	// IsRequest tells a request to others from a look of our own.
	IsRequest  bool
	Begun, End time.Time
	Attributes []Attribute
	// Failed is a word for why it failed, and empty when it went well.
	Failed string
}

// Attribute is one thing that is known of a span. A Text that is empty means the Number.
type Attribute struct {
	Key, Text string
	Number    int
}

// TraceID and SpanID are those of W3C Trace Context.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// String is the form in which backends show it.
func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

// String is the form in which backends show it.
func (s SpanID) String() string { return hex.EncodeToString(s[:]) }

// Tracer makes spans.
type Tracer struct {
	ids    *ids
	clock  clock.Clock
	take   func(Record)
	share  share
	driver atomic.Pointer[string]
	queue  *queue
}

// New makes the Tracer that the environment asks for. It is nil without an error when none is asked for; an error says which
// variable is wrong.
func New(ctx context.Context, o Options) (*Tracer, error) {
	s, err := readSettings(o)
	if s == nil || err != nil {
		return nil, err
	}
	ids, err := newIDs(o.Chance)
	if err != nil {
		return nil, err
	}
	q, err := newQueue(ctx, s, o)
	if err != nil {
		return nil, err
	}
	return &Tracer{ids: ids, clock: o.Clock, take: q.add, share: s.share, queue: q}, nil
}

// NewInto makes a Tracer that hands every span that ends to a function, whatever the environment says.
func NewInto(take func(Record), o Options) (*Tracer, error) {
	ids, err := newIDs(o.Chance)
	if err != nil {
		return nil, err
	}
	return &Tracer{ids: ids, clock: o.Clock, take: take, share: everything}, nil
}

// ServeDriver names the driver in the spans of looks from now on.
func (t *Tracer) ServeDriver(name string) {
	if t != nil {
		t.driver.Store(&name)
	}
}

// Shutdown sends what is left, for as long as the context lasts.
func (t *Tracer) Shutdown(ctx context.Context) {
	if t != nil && t.queue != nil {
		t.queue.end(ctx)
	}
}

// tracing is how the Tracer finds its way to the queues.
type tracing struct{}

// NewContext carries the Tracer, which may be nil.
func NewContext(ctx context.Context, t *Tracer) context.Context {
	if t == nil {
		return ctx
	}
	return context.WithValue(ctx, tracing{}, t)
}
