// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Park keeps the documents of a claim, about which this process does nothing any more. Only a person takes them off, who has found out what
// became of the volume; or the next process, which tries again. What was not told of yet is another matter.
func (r *Record) Park(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := r.keysOf(uid)
	slices.Sort(keys)
	for _, key := range keys {
		if e := r.entries[key]; e != nil && !e.untold {
			r.park(key)
		}
	}
}

func (r *Record) park(key types.UID) {
	if !slices.Contains(r.parked, key) {
		r.parked = append(r.parked, key)
	}
}

// ParkUnread keeps an entry of which this process understands nothing: a newer one may, after an update that was taken
// back. Should the claim begin anew meanwhile, its new document stands beside it.
func (r *Record) ParkUnread(key types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[key]
	if e == nil {
		return
	}
	r.park(key)
	if !e.unread {
		e.unread = true
		r.shards[e.shard].unread++
	}
}

// asideMark is between a UID, which has no dots, and a number in the keys of entries beside others.
const asideMark = ".unread-"

// claimOf is the claim of what is filed under a key.
func claimOf(key types.UID) types.UID {
	uid, _, _ := strings.Cut(string(key), ".")
	return types.UID(uid)
}

// setAside files an entry that is not understood under another key, in the same object, so that one write does it
// together with what takes its place.
func (r *Record) setAside(uid types.UID) {
	e := r.entries[uid]
	if e == nil || !e.unread {
		return
	}
	key := r.asideOf(uid)
	r.drop(uid)
	r.put(key, e)
	r.parked = append(r.parked, key)
}

// asideOf is a free key beside that of a claim.
func (r *Record) asideOf(uid types.UID) types.UID {
	mark := ""
	if isBetween(uid) {
		mark = betweenMark
	}
	key := uid
	for n := 1; r.entries[key] != nil; n++ {
		key = types.UID(fmt.Sprintf("%s%s%d%s", claimOf(uid), asideMark, n, mark))
	}
	return key
}

// keysOf lists what is filed of a claim, and what the server may have of it still.
func (r *Record) keysOf(uid types.UID) []types.UID {
	keys := []types.UID{uid}
	add := func(key types.UID) {
		if claimOf(key) == uid && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for key := range r.entries {
		add(key)
	}
	for _, s := range r.shards {
		if s.have == nil {
			continue
		}
		for key := range s.have.Data {
			add(types.UID(key))
		}
	}
	return keys
}

// Claims are those of which something is filed, or may be at the server still.
func (r *Record) Claims() []types.UID {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[types.UID]bool{}
	for key := range r.entries {
		seen[claimOf(key)] = true
	}
	for _, s := range r.shards {
		if s.have == nil {
			continue
		}
		for key := range s.have.Data {
			if isEntry(key) {
				seen[claimOf(types.UID(key))] = true
			}
		}
	}
	claims := make([]types.UID, 0, len(seen))
	for uid := range seen {
		claims = append(claims, uid)
	}
	return claims
}
