// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// crowd is how far the telling is of what is parked while there is no room.
type crowd int

const (
	roomy crowd = iota
	untold
	told
)

var errFull = errors.New("no new volume is begun while so many are without a certain outcome: the record of open attempts is full")

// maxTold bounds how many parked entries are named at once.
const maxTold = 100

// roomFor finds the object for a document: the one that has it, as long as the API server would take it,
// so that no document is ever in two; else the first with room. Nothing gives way: what is parked may be all that is known of a volume.
func (r *Record) roomFor(uid types.UID, d Document) (int, error) {
	if i, ok := r.shardOf(uid); ok {
		if r.shards[i].bytes+r.shards[i].growth(uid, d) <= shardLimit {
			return i, nil
		}
		return 0, r.refuse()
	}
	for i, s := range r.shards {
		if s.bytes+s.growth(uid, d) <= r.options.ShardBytes {
			r.crowd = roomy
			return i, nil
		}
	}
	return 0, r.refuse()
}

// refuse is the answer when there is no room. Whoever is told to make some may have done so: the objects with parked entries are read again
// at the next occasion.
func (r *Record) refuse() error {
	if len(r.parked) == 0 {
		return &RefusedError{
			errFull,
			"the driver leaves calls unfinished or answers with errors that say nothing: look at its log; new volumes are begun as those before them come to an end",
		}
	}
	r.crowd = max(r.crowd, untold)
	for _, key := range r.parked {
		if e := r.entries[key]; e != nil {
			r.shards[e.shard].stale = true
		}
	}
	return &RefusedError{
		fmt.Errorf("no new volume is begun: the record of open attempts is full, and %d of its entries are parked, because nobody could tell what became of their volumes", len(r.parked)),
		fmt.Sprintf("the log names them: look for their volumes at the driver, and take the entries of those that are dealt with out of the ConfigMaps %s-0 to -%d in namespace %s "+
			"with kubectl edit; new volumes are begun by themselves then", r.options.Name, shards-1, r.options.Namespace),
	}
}

// tellCrowd names what is parked, once for each time that the record is full: the events about it may be long gone.
func (r *Record) tellCrowd(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.crowd != untold {
		return
	}
	r.crowd = told
	named := r.parked[:min(len(r.parked), maxTold)]
	klog.FromContext(ctx).Error(nil, "The record of open attempts is full, and some of its entries are parked; no volume is begun before they are taken off by hand, or others come to an end",
		"namespace", r.options.Namespace, "name", r.options.Name, "parked", len(r.parked), "entries", named)
}

// dropRemoved drops the parked entries that somebody has taken out of an object, as is asked for when they are parked. They must have been seen
// there: one whose write had no answer may not have arrived. What is at work here is put back.
func (r *Record) dropRemoved(ctx context.Context, i int, found map[string]string) {
	for _, key := range slices.Clone(r.parked) {
		_, stays := found[string(key)]
		if e := r.entries[key]; e != nil && e.shard == i && !stays && r.shards[i].has(string(key)) {
			r.drop(key)
			klog.FromContext(ctx).Info("A parked entry was taken off the record of open attempts by hand", "entry", key, "object", r.shards[i].key)
		}
	}
}

// keepAdded keeps what somebody has put into an object, such as an entry that was taken out too early: the next process reads it. What this
// process has written without an answer is known by its key.
func (r *Record) keepAdded(ctx context.Context, i int, found map[string]string) {
	s := r.shards[i]
	for key, value := range found {
		if _, wanted := s.want[key]; wanted || !isEntry(key) || s.has(key) || s.dirty[key] {
			continue
		}
		filed := types.UID(key)
		if r.entries[filed] != nil {
			filed = r.asideOf(filed)
		}
		r.put(filed, &entry{Document: decode(value, found), shard: i, value: value, unread: true})
		r.parked = append(r.parked, filed)
		klog.FromContext(ctx).Info("An entry was put on the record of open attempts by hand; it stays, and the next process reads it", "entry", filed, "object", s.key)
	}
}

// spread moves what this process has begun without the right to write, where what others have left fills an object beyond what the API
// server takes: it would refuse every write of that object.
func (r *Record) spread() {
	for key, e := range r.entries {
		s := r.shards[e.shard]
		if s.bytes <= shardLimit || e.untold || s.has(string(key)) {
			continue
		}
		for i, other := range r.shards {
			if other.bytes+other.growth(key, e.Document) <= r.options.ShardBytes {
				s.unset(key, e)
				e.shard = i
				other.set(key, e)
				break
			}
		}
	}
}
