// SPDX-License-Identifier: Apache-2.0

// Package attempt owns the record of open attempts: what was begun at the driver, and has no certain
// outcome yet, is written down in the namespace of the process before it is begun, so that the next
// process finds it.
//
// It must not know what an attempt is: it keeps texts by the UID of the claim that they are for. Nor does
// it decide when one is over.
//
// In the walk of a claim it stands between the decision to call and the call, which is made only once the
// API server has acknowledged the entry; and before the end of a PersistentVolume, whose finalizer goes
// only once the entry is off. At the start of a process it stands before all work: whoever begins writes
// its epoch first, which ends the writing of whoever came before.
package attempt

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// Document is what is kept of one attempt. Parts are texts that it shares with others; texts of one name
// are the same.
type Document struct {
	Body  string
	Parts map[string]string
}

func (d Document) size() int {
	n := len(d.Body)
	for _, text := range d.Parts {
		n += len(text)
	}
	return n
}

// Entry is a document on record.
type Entry struct {
	UID types.UID
	// Key is what it is filed under: the UID, and more for one that stands beside another of the same claim.
	Key types.UID
	// Doubtful: it may have been settled while the record could not be read. Between: others may have led since it was written, who do not read it.
	Doubtful, Between bool
	Document
}

const (
	// Linger is how long entries are gathered while others are being written: a hundred claims at once cost a
	// few writes instead of a hundred, and a claim alone waits for nobody.
	Linger = 100 * time.Millisecond
	// enough is how many entries are worth a write without waiting for more.
	enough = 20
	// quiet is how long an entry that is over may stay when no other write takes it off.
	quiet = 2 * time.Second
	// healing is how often the record is tried again while there is no right to write it, and how often what is on it is compared with what
	// should be; beginning is how often it is tried while it cannot be read.
	healing   = 30 * time.Second
	beginning = time.Second

	// The API server takes 1 MiB of data in one ConfigMap. Entries go into the first that has room, so that
	// a burst is one write to one object; the bound keeps that object small for etcd, which stores it whole
	// every time, and leaves room for entries that grow.
	shards     = 8
	shardBytes = 512 << 10
	shardLimit = 900 << 10
	// maxDocument bounds one entry, and growthBytes is what one that is on record may become longer by: what happens to the volume has to
	// find room there.
	maxDocument = 256 << 10
	growthBytes = 32 << 10
	// maxOver bounds the memory of what was settled without a readable record.
	maxOver = 10_000
)

// Options say where the record is.
type Options struct {
	Client kube.Client
	Clock  clock.WithTicker
	// Namespace is that of the process, and Name what the objects' names begin with.
	Namespace, Name string
	// Holder names the process.
	Holder string
	// Linger is 0 to gather nothing.
	Linger time.Duration
	// ShardBytes is 0 for the usual bound.
	ShardBytes int
	// Tenure tells since when only those have led who keep the record; nil when nobody knows.
	Tenure func() kube.Tenure
	// Disown has noted that this process is none of those after all, since it has no right to write the record, and tells whether it is; Own has
	// noted that it is again. Both are nil when nobody knows.
	Disown func() bool
	Own    func()
	// Found hears of the entries that others have left, before anybody who waits for the beginning goes on.
	// It is called again when a record could be read only later.
	Found func(context.Context, []Entry)
}

// ErrForeign is the end: another process has begun to work, and this one must not go on.
var ErrForeign error = foreignError{}

type foreignError struct{}

func (foreignError) Error() string {
	return "another process has taken over the record of open attempts; of two that work for one driver, one would undo what the other does"
}

// yielding is how long who was overtaken leaves the work to the other: in a rollout it has ended by then.
const yielding = time.Minute

// YieldsFor tells whoever runs the work when it may begin again.
func (foreignError) YieldsFor() time.Duration { return yielding }

// RefusedError tells that the record cannot do what it is asked for until somebody sees to it.
type RefusedError struct {
	cause  error
	advice string
}

func (e *RefusedError) Error() string { return e.cause.Error() }

func (e *RefusedError) Unwrap() error { return e.cause }

// Advice is for the user who waits.
func (e *RefusedError) Advice() string { return e.advice }

func refuseLarge(size int) error {
	return &RefusedError{
		fmt.Errorf("the request has %d bytes, and the record of open attempts takes %d", size, maxDocument),
		"the parameters of the StorageClass, or the labels and annotations that the driver is told, have to be shorter",
	}
}

// state is how far the record can be used.
type state int

const (
	unbegun state = iota
	recording
	// unwritable: there is no right to write it.
	unwritable
	foreign
)

// Record is the record of one process. Only one process at a time can write it.
type Record struct {
	options Options

	mu      sync.Mutex
	state   state
	epoch   string
	entries map[types.UID]*entry
	shards  []*shard
	// parked are entries that this process does nothing about any more, the oldest first. They may be all that is known of a volume, and stay.
	parked []types.UID
	// crowd is how far the telling is of what is parked while there is no room.
	crowd crowd
	// over are the claims that were settled while the record could not be read or written: what turns up of them is of no
	// use to anybody, and would delete what was kept since. forgot tells that there were more than are remembered.
	over   map[types.UID]bool
	forgot bool
	// disowned: others were told that what is on record may be over.
	disowned bool
	// telling: others are being told of what was found.
	telling bool

	group group
	// begun is closed when work may begin.
	begun chan struct{}
	once  sync.Once
	// lost is closed with ErrForeign, and leaving says that an entry went or could not be written.
	lost    chan struct{}
	leaving chan struct{}
}

type entry struct {
	Document
	shard int
	// value is how it is written down. What others have written stays as they wrote it.
	value string
	// unread: this process does not understand it. untold: it was not even told of it yet.
	unread, untold bool
}

// New makes a record that was not begun yet.
func New(o Options) *Record {
	if o.ShardBytes == 0 {
		o.ShardBytes = shardBytes
	}
	r := &Record{
		options: o, entries: map[types.UID]*entry{}, over: map[types.UID]bool{},
		begun: make(chan struct{}), lost: make(chan struct{}), leaving: make(chan struct{}, 1),
		group: group{arrived: make(chan struct{}, 1)},
	}
	for i := range shards {
		r.shards = append(r.shards, newShard(shardKey(o.Namespace, o.Name, i)))
	}
	return r
}

// Len is how many entries there are, and how many of them are parked.
func (r *Record) Len() (entries, parked int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.entries), len(r.parked)
}

// Has tells whether something is filed under a key.
func (r *Record) Has(key types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries[key] != nil
}

// Check fails once another process has taken over.
func (r *Record) Check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == foreign {
		return ErrForeign
	}
	return nil
}

// Object is the object that an entry is in, for events about it.
func (r *Record) Object(key types.UID) *corev1.ConfigMap {
	r.mu.Lock()
	defer r.mu.Unlock()
	object := &corev1.ConfigMap{}
	if e := r.entries[key]; e != nil {
		object.Namespace, object.Name = r.shards[e.shard].key.Namespace, r.shards[e.shard].key.Name
		if have := r.shards[e.shard].have; have != nil {
			object.UID, object.ResourceVersion = have.UID, have.ResourceVersion
		}
	}
	return object
}
