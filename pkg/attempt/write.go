// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// writeTries is how often one object is tried in one write. An object changes under its only writer when
// an answer was lost, or somebody edits it.
const writeTries = 4

// write brings every object to what it should be. It is called by one at a time.
//
// Each patch carries the resource version of the last answer. There is one writer, so that it knows the
// version without asking, and the epoch needs no test of its own: whoever has taken over has changed the
// version. Only after a conflict the object is read, and its epoch tells a lost answer or somebody's edit
// from the end.
func (r *Record) write(ctx context.Context) error {
	for i := range r.shards {
		err := r.writeShard(ctx, i)
		switch {
		case apierrors.IsForbidden(err) && i > 0 && r.isUnmade(i):
			// A quota, or a webhook: there is the right to write the others.
			return &RefusedError{fmt.Errorf("making one more object for the record of open attempts: %w", err), "see that ConfigMap " + r.shards[i].key.Name + " can be made in namespace " + r.options.Namespace}
		case apierrors.IsForbidden(err):
			r.warn(ctx, err)
			return nil
		case err != nil:
			return fmt.Errorf("writing the record of open attempts: %w", err)
		}
	}
	return nil
}

func (r *Record) writeShard(ctx context.Context, i int) error {
	var err error
	for range writeTries {
		if r.isDoubted(i) {
			if err := r.lookAgain(ctx, i); err != nil {
				return err
			}
		}
		have, changes, stop := r.takeChanges(i)
		if stop != nil || len(changes) == 0 {
			return stop
		}
		err = r.sendOrGiveBack(ctx, i, have, changes)
		switch {
		case err == nil && changes[turnKey] == nil:
			return nil
		case err == nil:
			continue // nothing but that the turn was written, which goes again
		}
		if !isOutrun(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return err
}

// sendOrGiveBack notes what was not written, also when the sending ends by a fault of this program.
func (r *Record) sendOrGiveBack(ctx context.Context, i int, have *corev1.ConfigMap, changes map[string]*string) error {
	err := errBroken
	defer func() {
		if err != nil {
			r.giveBack(i, err)
		}
	}()
	err = r.send(ctx, i, have, changes)
	return err
}

// send writes changes to an object. One that is not there is made without entries: its creation carries no resource version, so that it may
// succeed, or arrive, at any time after another process has taken over, which does not look for it again.
func (r *Record) send(ctx context.Context, i int, have *corev1.ConfigMap, changes map[string]*string) error {
	if have == nil {
		made, err := r.create(ctx, r.shards[i].key, map[string]string{epochKey: r.ownEpoch()})
		if err != nil {
			return err
		}
		r.keep(i, made)
		have = made
	}
	if err := r.prove(ctx, i); err != nil {
		return err
	}
	stored, err := kube.PatchData(ctx, r.options.Client, have, changes)
	if err != nil {
		return err
	}
	r.keep(i, stored)
	return nil
}

func (r *Record) ownEpoch() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epoch
}

func (r *Record) isDoubted(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state == recording && (r.shards[i].unsure || r.shards[i].stale)
}

func (r *Record) takeChanges(i int) (*corev1.ConfigMap, map[string]*string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.state {
	case foreign:
		return nil, nil, ErrForeign
	case unbegun, unwritable:
		return nil, nil, nil
	case recording:
	}
	s := r.shards[i]
	return s.have, s.takeOrTurn(), nil
}

func (r *Record) keep(i int, stored *corev1.ConfigMap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.shards[i]
	s.have = stored
	if s.has(turnKey) {
		s.dirty[turnKey] = true
	}
}

// giveBack notes what was not written. Who had no right has changed nothing for certain: were that in doubt
// too, every volume of the driver would stay for as long as the right is missing.
func (r *Record) giveBack(i int, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.shards[i]
	s.redo()
	if apierrors.IsForbidden(cause) {
		return
	}
	s.unsure = true
	if s.have != nil {
		s.lost = s.have.ResourceVersion
	}
}

// prove makes sure that the next process will read an object that was not there when this one began, before anything is written to it. Who
// takes the record over writes to the first object and then reads the others: if the first one is ours
// after the creation, the new one will be read, and taken over under its resource version.
func (r *Record) prove(ctx context.Context, i int) error {
	r.mu.Lock()
	s := r.shards[i]
	proven := i == 0 || s.proven
	r.mu.Unlock()
	if proven {
		return nil
	}
	first, err := kube.Fetch[*corev1.ConfigMap](ctx, r.options.Client, r.shards[0].key)
	if err != nil {
		return err
	}
	if err := r.checkEpoch(first); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.proven = true
	return nil
}

// lookAgain reads an object that is not as it was.
func (r *Record) lookAgain(ctx context.Context, i int) error {
	found, err := kube.Fetch[*corev1.ConfigMap](ctx, r.options.Client, r.shards[i].key)
	switch {
	case apierrors.IsNotFound(err):
		found = nil // it was never made, or somebody has removed it: it is made with all that should be in it
	case err != nil:
		return err
	default:
		if found, err = r.reclaim(ctx, i, found); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if found != nil {
		r.dropRemoved(ctx, i, found.Data)
		r.keepAdded(ctx, i, found.Data)
	}
	r.shards[i].adopt(found)
	return nil
}

// reclaim goes on with an object that is there. Which process has the record is told by the first object alone: another one may have the epoch of a
// process that was overtaken, and has made it or taken it over before it found that out. It is given the right epoch, which ends the other's writing.
func (r *Record) reclaim(ctx context.Context, i int, found *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	epoch := r.ownEpoch()
	if found.Data[epochKey] == epoch {
		return found, nil
	}
	if i == 0 {
		return nil, r.checkEpoch(found)
	}
	first, err := kube.Fetch[*corev1.ConfigMap](ctx, r.options.Client, r.shards[0].key)
	if err != nil {
		return nil, err
	}
	if err := r.checkEpoch(first); err != nil {
		return nil, err
	}
	return kube.PatchData(ctx, r.options.Client, found, map[string]*string{epochKey: &epoch})
}

// checkEpoch ends all writing when an object belongs to somebody else.
func (r *Record) checkEpoch(found *corev1.ConfigMap) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	epoch := found.Data[epochKey]
	if epoch == r.epoch {
		return nil
	}
	r.enter(foreign)
	return fmt.Errorf("%w: %s/%s has epoch %q, and this process has %q", ErrForeign, found.Namespace, found.Name, epoch, r.epoch)
}

func (r *Record) isUnmade(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shards[i].have == nil
}
