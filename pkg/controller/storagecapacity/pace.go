// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"hash/fnv"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// pace says how often the driver is asked.
type pace struct {
	// identity of the process.
	identity             string
	poll                 time.Duration
	retryStart, retryMax time.Duration
}

const (
	// apart is the least time between two questions about the same, and so between two writes of an object:
	// ten thousand claims in a burst must not become ten thousand writes.
	apart = time.Second
	// eachOfAll is what one segment adds to the least time between two looks at all of them.
	eachOfAll = 10 * time.Millisecond
)

// between is the least time between two questions about the same, the last of which failed so often.
func (p pace) between(failures int) time.Duration {
	if failures == 0 {
		return min(apart, p.poll)
	}
	wait := min(p.retryStart, p.retryMax)
	for n := 1; n < failures && wait > 0 && wait < p.retryMax; n++ {
		wait += min(wait, p.retryMax-wait)
	}
	return wait
}

// betweenAll is the least time between two looks at all of so many segments.
func (p pace) betweenAll(segments int) time.Duration {
	return min(max(apart, time.Duration(segments)*eachOfAll), p.poll)
}

// untilPoll is when to ask again without a reason. Each question has its own time within the interval, so
// that they do not all come at once, neither after a start nor from the processes of many nodes. What was
// asked just before its time waits for the next.
func (p pace) untilPoll(key reconcile.Key, asked time.Time) time.Duration {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(p.identity + "\x00" + key.Namespace + "\x00" + key.Name)) // never fails
	mine := time.Duration(sum.Sum64() % uint64(p.poll))
	at := time.Duration(asked.UnixNano()) % p.poll
	until := (mine - at + p.poll) % p.poll
	if until < p.poll/2 {
		until += p.poll
	}
	return until
}
