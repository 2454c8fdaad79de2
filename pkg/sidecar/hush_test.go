// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// TestIdleWordsOfLibraries catches logs in which a library says again, or of no use, what the program says itself, errors at a
// clean end, and a line of the source that is always that of the filter.
func TestIdleWordsOfLibraries(t *testing.T) {
	for _, c := range []struct {
		verbosity int
		want      string
	}{
		{2, "Read short Failed"},
		{4, "Connecting Lost Cancelled Read short Failed"},
		{6, "Gate Connecting Lost Cancelled Read short Failed"},
	} {
		var text bytes.Buffer
		inner := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&text), textlogger.Verbosity(c.verbosity)))
		logger := klog.New(newHushed(inner.GetSink()))
		named := logger.WithName("client").WithValues("x", "y")
		named.V(1).Info("Feature gate default state", "as", "Gate")
		logger.Info("Still connecting", "as", "Connecting")
		named.Error(nil, "Lost connection", "as", "Lost")
		logger.Error(fmt.Errorf("reading: %w", context.Canceled), "Unexpected error when reading response body", "as", "Cancelled")
		logger.Error(io.ErrUnexpectedEOF, "Unexpected error when reading response body", "as", "Read short")
		logger.WithCallDepth(0).Error(errors.New("no"), "Failed", "as", "Failed")
		var got []string
		for line := range strings.Lines(text.String()) {
			_, as, _ := strings.Cut(line, `as="`)
			as, _, _ = strings.Cut(as, `"`)
			got = append(got, as)
			if !strings.Contains(line, "hush_test.go:") {
				t.Errorf("the line of the source is lost: %s", line)
			}
		}
		if found := strings.Join(got, " "); found != c.want {
			t.Errorf("at %d: %s, want %s", c.verbosity, found, c.want)
		}
	}
}

// TestTheProcessIsHushed: at work, and in the answers of commands.
func TestTheProcessIsHushed(t *testing.T) {
	for _, args := range []string{"sample --version", "sample explain"} {
		klog.SetLoggerWithOptions(textlogger.NewLogger(textlogger.NewConfig()), klog.ContextualLogger(true))
		program := sample()
		program.Commands = []Command{{Name: "explain", Object: "THING", Kinds: kinds}}
		Main(t.Context(), program, strings.Fields(args), io.Discard, io.Discard)
		if _, ok := klog.Background().GetSink().(*hushed); !ok {
			t.Errorf("%s: the logger is %T", args, klog.Background().GetSink())
		}
	}
}

// TestHushBesideTheFlushDaemon: klog looks at its logger from time to time, and the logger is made ours while it does. Catches, under the
// race detector, a change that does not stop it first.
func TestHushBesideTheFlushDaemon(t *testing.T) {
	t.Cleanup(klog.CaptureState().Restore)
	for range 20 {
		klog.StartFlushDaemon(50 * time.Microsecond)
		time.Sleep(time.Millisecond)
		hush(textlogger.NewLogger(textlogger.NewConfig()))
	}
}
