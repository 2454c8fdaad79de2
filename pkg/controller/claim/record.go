// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/trace"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Recording says where open attempts are written down.
type Recording struct {
	Namespace string
	// Name is what the names of the objects begin with; RecordName makes one.
	Name string
	// Holder names the process.
	Holder string
	// Linger is 0 to gather nothing; RecordLinger is meant for programs.
	Linger time.Duration
	// Tenure tells since when only those have led who keep the record; nil when nobody knows.
	Tenure func() kube.Tenure
	// Disown has noted that this process does not keep it after all, and tells whether it is; Own has noted that it does again. Both are nil when
	// nobody knows.
	Disown func() bool
	Own    func()
}

// RecordLinger is how long entries are gathered while others are being written.
const RecordLinger = attempt.Linger

// RecordName is the name of the record of a driver, on one node or, when that is empty, for the whole cluster.
func RecordName(driver, node string) string { return wellknown.AttemptsName(driver, node) }

func newRecord(c *Controller) *attempt.Record {
	if c.Record == nil {
		return nil
	}
	return attempt.New(attempt.Options{
		Client: c.Client, Clock: c.Clock, Namespace: c.Record.Namespace, Name: c.Record.Name, Holder: c.Record.Holder,
		Linger: c.Record.Linger, Tenure: c.Record.Tenure, Disown: c.Record.Disown, Own: c.Record.Own, Found: c.adopt,
	})
}

// Begin takes the record over, and gives the claims whose attempts are open. Nothing may be done before.
func (c *Controller) Begin(ctx context.Context) ([]reconcile.Key, error) {
	if c.record == nil {
		return nil, nil
	}
	err := c.record.Begin(ctx)
	var keys []reconcile.Key
	for _, open := range c.memory.unsettled() {
		keys = append(keys, keyOfRef(open.Ref))
	}
	return keys, err
}

// AwaitBegun returns when it is known which attempts an earlier process has left open.
func (c *Controller) AwaitBegun(ctx context.Context) error {
	if c.record == nil {
		return nil
	}
	return c.record.AwaitBegun(ctx)
}

// Sweep takes what is over off the record.
func (c *Controller) Sweep(ctx context.Context) error {
	if c.record == nil {
		return nil
	}
	return c.record.Sweep(ctx)
}

// runRecorded works while the record is ours. What is over is taken off after the last key.
func (c *Controller) runRecorded(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	tending, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	tended := make(chan error, 1)
	go func() {
		defer stop()
		tended <- c.record.Run(tending)
	}()
	_ = c.record.AwaitBegun(working) // when that ends without a beginning, so does the queue
	err := c.queue.Run(working)
	end()
	return errors.Join(err, <-tended)
}

// write records an attempt before its call. Without the acknowledgement there is no call.
func (c *Controller) write(ctx context.Context, open *provision.Attempt) error {
	if c.record == nil {
		return nil
	}
	written, err := provision.BuildRecord(open)
	if err != nil {
		return err
	}
	// The write is shared with other claims, and in nobody's trace: the wait for it is what this one sees.
	ctx, span := trace.Start(ctx, "record attempt")
	if err := c.record.Put(ctx, open.Ref.UID, attempt.Document(written)); err != nil {
		span.End("NotRecorded")
		return fmt.Errorf("recording the request for volume %s before it is made: %w", open.Name(), err)
	}
	span.End("")
	return nil
}

// unwritten ends a look whose attempt could not be recorded. Users hear of it only when they can do
// something; the API server's own troubles pass.
func (c *Controller) unwritten(ctx context.Context, claim *corev1.PersistentVolumeClaim, open *provision.Attempt, err error) (reconcile.Result, error) {
	var refused *attempt.RefusedError
	switch {
	case !errors.As(err, &refused) && !apierrors.IsInvalid(err):
		return reconcile.Result{}, err
	case open.Open:
		return c.rejectOpen(ctx, claim, open, err)
	default:
		return c.reject(ctx, claim, provision.Reject{Err: err})
	}
}

// finish takes an attempt that is over off the record, when that suits. What was found of the claim is not over with it, and all of a
// claim goes together.
func (c *Controller) finish(uid types.UID) {
	if c.record != nil {
		c.memory.unlessFound(uid, func() { c.record.Remove(uid) })
	}
}

// letGo forgets an attempt of which nothing more can be found out now. It stays on record for the next
// process, whose driver may know more.
func (c *Controller) letGo(uid types.UID) *provision.Attempt {
	if c.record != nil {
		c.record.Park(uid)
	}
	c.handles.free(uid)
	return c.memory.forget(uid)
}
