// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"

	"k8s.io/klog/v2"
)

// What the libraries say that this program says itself, and better, or that is of no use to who runs it. From the
// verbosity on that stands beside it, it is logged.
var (
	idle = map[string]int{
		"Feature gate default state": 6, // ten lines of client-go at the start
		"Still connecting":           4, // "Waiting for the driver" says what is in the way
		"Lost connection":            4, // "Lost the connection to the driver" follows
	}
	// cut is a list that ends with the process.
	cut = map[string]int{"Unexpected error when reading response body": 4}
)

// hushed passes on what is worth a line.
type hushed struct{ klog.LogSink }

// deep is a sink that finds the line of the source from deeper down.
type deep interface {
	WithCallDepth(depth int) klog.LogSink
}

// hush makes a logger that of the process, without what is idle, before anything is logged. One that is so already stays.
func hush(logger klog.Logger) {
	if _, already := logger.GetSink().(*hushed); already {
		return
	}
	options := []klog.LoggerOption{klog.ContextualLogger(true)}
	if writer, ok := logger.GetSink().(interface{ WriteKlogBuffer(data []byte) }); ok {
		options = append(options, klog.WriteKlogBuffer(writer.WriteKlogBuffer))
	}
	klog.StopFlushDaemon() // which looks at the logger from time to time, without a lock
	klog.SetLoggerWithOptions(klog.New(newHushed(logger.GetSink())), options...)
}

func newHushed(sink klog.LogSink) *hushed {
	if d, ok := sink.(deep); ok {
		sink = d.WithCallDepth(1)
	}
	return &hushed{sink}
}

// Init implements klog.LogSink. The sink within has been through it.
func (h *hushed) Init(klog.RuntimeInfo) {}

// Info implements klog.LogSink.
func (h *hushed) Info(level int, message string, keysAndValues ...any) {
	if least, ok := idle[message]; ok && !h.LogSink.Enabled(least) {
		return
	}
	h.LogSink.Info(level, message, keysAndValues...)
}

// Error implements klog.LogSink.
func (h *hushed) Error(err error, message string, keysAndValues ...any) {
	least, ok := idle[message]
	if !ok && errors.Is(err, context.Canceled) {
		least, ok = cut[message]
	}
	if ok && !h.LogSink.Enabled(least) {
		return
	}
	h.LogSink.Error(err, message, keysAndValues...)
}

// WithValues implements klog.LogSink.
func (h *hushed) WithValues(keysAndValues ...any) klog.LogSink {
	return &hushed{h.LogSink.WithValues(keysAndValues...)}
}

// WithName implements klog.LogSink.
func (h *hushed) WithName(name string) klog.LogSink { return &hushed{h.LogSink.WithName(name)} }

// WithCallDepth makes the line of the source that of the caller, where others log on somebody's behalf.
func (h *hushed) WithCallDepth(depth int) klog.LogSink {
	if d, ok := h.LogSink.(deep); ok {
		return &hushed{d.WithCallDepth(depth)}
	}
	return h
}
