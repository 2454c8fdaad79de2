// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// Recorder collects events. Like the real one it tells the same message for the same object and reason
// once; Count says how often it was asked to.
type Recorder struct {
	log *Log

	mu     sync.Mutex
	events []string
	last   map[told]string
	counts map[string]int
}

type told struct {
	uid    types.UID
	reason string
}

// NewRecorder makes a recorder that writes into a log, which may be nil.
func NewRecorder(log *Log) *Recorder {
	return &Recorder{log: log, last: map[told]string{}, counts: map[string]int{}}
}

// Normal implements kube.Recorder.
func (r *Recorder) Normal(obj kube.Object, reason, message string) {
	r.record(obj, "Normal "+reason+" ", reason, message)
}

// Warning implements kube.Recorder.
func (r *Recorder) Warning(obj kube.Object, reason, message string) {
	r.record(obj, "Warning "+reason+" ", reason, message)
}

// Shared implements kube.Recorder.
func (r *Recorder) Shared(obj kube.Object, reason, message string) { r.Warning(obj, reason, message) }

func (r *Recorder) record(obj kube.Object, head, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := head + message
	r.counts[line]++
	cause := told{obj.GetUID(), reason}
	if before, ok := r.last[cause]; ok && before == message {
		return
	}
	r.last[cause] = message
	r.events = append(r.events, line)
	if r.log != nil {
		r.log.write("event " + nameOf(kube.KeyOf(obj)) + ": " + line)
	}
}

// Events are all events in order, each "Normal Reason message" or "Warning Reason message".
func (r *Recorder) Events() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Count is how often an event was recorded, repeated ones too.
func (r *Recorder) Count(event string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[event]
}
