// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"errors"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
)

// create sends a CreateSnapshot. First the secret, then the mark, then the call: a secret that cannot be
// read must not leave a mark behind, and no call may be sent without a mark in the API, since only that
// tells the next process of a snapshot nobody has a handle of.
func (r *round) create(ctx context.Context, in snapshot.ContentInput, step snapshot.Create) error {
	secrets, err := r.secret(ctx, step.Secret, step.WithoutSecret)
	if err != nil {
		return r.withoutSecret(ctx, in, step, err)
	}
	if step.Mark || step.Parameters != "" {
		if err := r.mark(ctx, &step); err != nil {
			return err
		}
	}
	// Open until the answer is in the API: an answer that could not be written is as good as none.
	open := in.Attempt
	open.Tried, open.Refused = snapshot.Open, false
	r.remember(r.content.UID, open)
	step.Request.Secrets = secrets
	klog.FromContext(ctx).V(5).Info("asking the driver for a snapshot", "name", step.Request.GetName(), "volume", step.Request.GetSourceVolumeId())
	made, err := r.Driver.CreateSnapshot(r.whileWanted(throttle.WithFlow(ctx, r.flow()), in), step.Request)
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // the process is ending; the mark speaks for the open call
	}
	if errors.Is(err, errUnwanted) {
		in.Attempt.Tried = snapshot.Settled
		r.remember(r.content.UID, in.Attempt)
		return fault.RetryAfter(err, soon)
	}
	in.Now = r.Clock.Now() // a call that took long is waited after, not through
	return r.settle(ctx, snapshot.AfterCreate(in, snapshot.AnswerOf(made), err), err)
}

// errUnwanted is no failure: the snapshot goes, and the driver was never asked for it.
var errUnwanted = errors.New("the snapshot is being deleted, and nothing was asked for yet")

// whileWanted looks at the objects once more when the turn of a first call has come: what would be taken is only to be
// deleted again. The deletion of a snapshot cannot be taken back, so the caches are enough.
func (r *round) whileWanted(ctx context.Context, in snapshot.ContentInput) context.Context {
	if snapshot.MayExist(in) {
		return ctx // only the call can tell what became of the one before it
	}
	return throttle.WithGlance(ctx, func(context.Context) error {
		content, ok := r.Contents.Lookup(r.key)
		if ok && content.DeletionTimestamp != nil && r.cachedState(content) == snapshot.Deleting {
			return errUnwanted
		}
		return nil
	})
}

// poll asks by each way until one answers; an answer that does not hold the snapshot is none.
func (r *round) poll(ctx context.Context, in snapshot.ContentInput, step snapshot.Poll) error {
	ctx = throttle.WithFlow(ctx, r.flow())
	secrets, err := r.secret(ctx, step.Secret, false)
	var found *csi.Snapshot
	switch {
	case err == nil:
		found, err = r.look(ctx, &in, step, secrets)
	case step.Again == nil:
		return r.withoutSecret(ctx, in, step, err)
	}
	if err == nil && found == nil {
		err = snapshot.ErrNotFound(step.Handle)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case in.Unlisted && in.Attempt.Listed:
		// It was there and is lost.
	case step.AsksByName(err):
		in.Attempt = in.Attempt.Asking()
		return r.create(ctx, in, *step.Again)
	}
	in.Now = r.Clock.Now()
	return r.settle(ctx, snapshot.AfterPoll(in, snapshot.AnswerOf(found), err), err)
}

// look finds the snapshot by its handle; nil means that the driver does not show it. What GetSnapshot does not know, though it
// was cut, is lost: asking for it by its name would take another under another id, of which no object would know.
//
// What a list has to say goes into the input.
func (r *round) look(ctx context.Context, in *snapshot.ContentInput, step snapshot.Poll, secrets map[string]string) (*csi.Snapshot, error) {
	var failed error
	if step.Get {
		found, err := r.Driver.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: step.Handle, Secrets: secrets})
		if err == nil && found.GetSnapshotId() == step.Handle {
			in.Attempt.Seen = true
			return found, nil
		}
		failed = err
	}
	if step.List {
		listed, err := r.Driver.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: step.Handle, Secrets: secrets})
		if fault.IsNotFound(err) {
			err = nil // meant as an empty list, which the CSI spec wants
		}
		if !fault.IsNotFound(failed) {
			failed = err
		}
		for _, entry := range listed.GetEntries() {
			// Drivers that ignore the filter exist; the first entry is not always the right one.
			if entry.GetSnapshot().GetSnapshotId() == step.Handle {
				in.Attempt.Listed = true
				return entry.GetSnapshot(), nil
			}
		}
		in.Unlisted = err == nil && len(listed.GetEntries()) == 0 && listed.GetNextToken() == ""
	}
	return nil, failed
}

func (r *round) delete(ctx context.Context, in snapshot.ContentInput, step snapshot.Delete) error {
	secrets, err := r.secret(ctx, step.Secret, step.WithoutSecret)
	if err != nil {
		return r.withoutSecret(ctx, in, step, err)
	}
	klog.FromContext(ctx).V(2).Info("deleting snapshot at the driver", "handle", step.Handle)
	waiting := throttle.WithRecheck(throttle.WithFlow(ctx, classOf(r.content)), func(ctx context.Context) error { return r.recheck(ctx, step.Handle) })
	err = r.Driver.DeleteSnapshot(waiting, &csi.DeleteSnapshotRequest{SnapshotId: step.Handle, Secrets: secrets})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errChanged) {
		return fault.RetryAfter(err, soon)
	}
	in.Now = r.Clock.Now()
	after := snapshot.AfterDelete(in, err)
	if after.Attempt.Deleted {
		err = nil
	}
	return r.settle(ctx, after, err)
}

// errChanged is no failure: what was decided before the call does not hold any more when its turn has come.
var errChanged = errors.New("the snapshot is not to be deleted any more")

// recheck decides anew about a deletion that had to wait for its turn: what was read live before it is old.
func (r *round) recheck(ctx context.Context, handle string) error {
	next, err := r.confirm(ctx)
	switch {
	case err != nil:
		return err
	case next.ends:
		return errChanged
	}
	in, ok := r.gather()
	if !ok {
		return errChanged
	}
	goes := ""
	switch again := snapshot.NextContentStep(in).(type) {
	case snapshot.Delete:
		goes = again.Handle
	case snapshot.Remove:
		goes = again.Handle
	}
	if goes != handle {
		return errChanged
	}
	return nil
}

// flow names the calls that share their turns with this content's. A create that only asks again for what was
// taken must not wait behind those that take.
func (r *round) flow() string {
	if hasHandle(r.content) {
		return classOf(r.content) + " (taken)"
	}
	return classOf(r.content)
}

// secret reads a secret for one call. Missing ones are allowed where patience is over.
func (r *round) secret(ctx context.Context, ref *corev1.SecretReference, mayMiss bool) (map[string]string, error) {
	if ref == nil {
		return nil, nil
	}
	data, err := kube.FetchSecret(ctx, r.Client, kube.Key{Namespace: ref.Namespace, Name: ref.Name})
	if mayMiss && apierrors.IsNotFound(err) {
		return nil, nil
	}
	return data, err
}

// withoutSecret ends a call that was not made.
func (r *round) withoutSecret(ctx context.Context, in snapshot.ContentInput, step snapshot.ContentStep, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.settle(ctx, snapshot.AfterSecret(in, step, err), err)
}

// settle writes what follows from a call, and only then remembers it: what is not written has not happened.
func (r *round) settle(ctx context.Context, after snapshot.After, failure error) error {
	if err := r.report(ctx, after.Status, after.Told); err != nil {
		return err
	}
	r.remember(r.content.UID, after.Attempt)
	r.failed = failure
	return nil
}
