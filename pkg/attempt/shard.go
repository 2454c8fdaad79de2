// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

const (
	epochKey   = "epoch"
	partPrefix = "part."
	// turnKey is there for a moment: it gives an object a new resource version when there is nothing else to write.
	turnKey = partPrefix + "turn"
)

// shard is one object of the record: what should be in it, and what is.
type shard struct {
	key kube.Key
	// want are entries and parts; the epoch is the record's.
	want map[string]string
	// uses counts the entries that need a part.
	uses  map[string]int
	bytes int
	// have is the object as the server last answered, nil while none is known to exist.
	have *corev1.ConfigMap
	// unread counts the entries that nobody here understands: which parts they need is not known then.
	unread int
	// dirty are the keys that may differ between want and have.
	dirty map[string]bool
	// taken are those that the write under way sees to.
	taken map[string]bool
	// lost is the resource version under which a write went out that had no answer: it may arrive for as long as the object has that version.
	lost string
	// unsure: the last write had no certain answer, so that have may be wrong.
	unsure bool
	// stale: somebody may have edited the object since.
	stale bool
	// proven: the object was there when this process took the record over, or while it had it.
	proven bool
}

// isEntry tells the keys of entries from those that belong to the record itself.
func isEntry(key string) bool { return key != epochKey && !strings.HasPrefix(key, partPrefix) }

func newShard(key kube.Key) *shard {
	return &shard{key: key, want: map[string]string{}, uses: map[string]int{}, dirty: map[string]bool{}}
}

// encode writes the names of the parts before the body: without them nobody could tell which parts are in
// use who does not know what the bodies say.
func encode(d Document) string {
	names := make([]string, 0, len(d.Parts))
	for name := range d.Parts {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ",") + "\n" + d.Body
}

func decode(value string, data map[string]string) Document {
	names, body, ok := strings.Cut(value, "\n")
	if !ok {
		return Document{Body: value}
	}
	d := Document{Body: body, Parts: map[string]string{}}
	for name := range strings.SplitSeq(names, ",") {
		if text, ok := data[partPrefix+name]; ok && name != "" {
			d.Parts[name] = text
		}
	}
	return d
}

// has tells whether a key was there when the server last answered.
func (s *shard) has(key string) bool {
	if s.have == nil {
		return false
	}
	_, ok := s.have.Data[key]
	return ok
}

// growth is how many bytes more a document takes here.
func (s *shard) growth(uid types.UID, d Document) int {
	n := len(encode(d)) + len(uid) - len(s.want[string(uid)])
	for name, text := range d.Parts {
		if s.uses[name] == 0 {
			n += len(partPrefix) + len(name) + len(text)
		}
	}
	return n
}

func (s *shard) set(key types.UID, e *entry) {
	s.put(string(key), e.value)
	if e.unread {
		s.unread++
	}
	for name, text := range e.Parts {
		if s.uses[name]++; s.uses[name] == 1 {
			s.put(partPrefix+name, text)
		}
	}
}

func (s *shard) unset(key types.UID, e *entry) {
	s.cut(string(key))
	if e.unread {
		s.unread--
	}
	for name := range e.Parts {
		if s.uses[name]--; s.uses[name] == 0 {
			delete(s.uses, name)
			s.cut(partPrefix + name)
		}
	}
}

func (s *shard) put(key, value string) {
	s.cut(key)
	s.bytes += len(key) + len(value)
	s.want[key] = value
}

func (s *shard) cut(key string) {
	if old, ok := s.want[key]; ok {
		s.bytes -= len(key) + len(old)
	}
	delete(s.want, key)
	s.dirty[key] = true
}

// take gives what has to change at the server, and counts it as done.
func (s *shard) take() map[string]*string {
	changes := map[string]*string{}
	var stored map[string]string
	if s.have != nil {
		stored = s.have.Data
	}
	for key := range s.dirty {
		want, wanted := s.want[key]
		have, had := stored[key]
		switch {
		case wanted && (!had || have != want):
			changes[key] = &want
		case !wanted && had && (s.unread == 0 || key == turnKey || !strings.HasPrefix(key, partPrefix)):
			changes[key] = nil
		}
	}
	s.taken, s.dirty = s.dirty, map[string]bool{}
	return changes
}

// takeOrTurn writes something in any case where an earlier write had no answer and is not there, but may be on its way. Once the object has
// another version it is refused. Else it would arrive after it was taken for not done, and what it says may be over by then.
func (s *shard) takeOrTurn() map[string]*string {
	changes := s.take()
	if lost := s.lost; len(changes) == 0 && s.have != nil && s.have.ResourceVersion == lost {
		changes[turnKey] = &lost
	}
	return changes
}

// adopt takes what the server has for true: all of it may differ from what should be.
func (s *shard) adopt(found *corev1.ConfigMap) {
	s.have, s.unsure, s.stale = found, false, false
	for key := range s.want {
		s.dirty[key] = true
	}
	if found == nil {
		s.proven = false // whoever has taken over meanwhile has not seen it
		return
	}
	for key := range found.Data {
		if key != epochKey {
			s.dirty[key] = true
		}
	}
}

// redo takes back that the last write was done.
func (s *shard) redo() {
	for key := range s.taken {
		s.dirty[key] = true
	}
}
