// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"cmp"
	"context"
	"fmt"
	"maps"

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
		if r.isUnsure(i) {
			if err := r.lookAgain(ctx, i); err != nil {
				return err
			}
		}
		have, changes, stop := r.takeChanges(i)
		if stop != nil || len(changes) == 0 {
			return cmp.Or(stop, r.prove(ctx, i))
		}
		var stored *corev1.ConfigMap
		if have == nil {
			stored, err = r.create(ctx, r.shards[i].key, r.whole(i))
		} else {
			stored, err = kube.PatchData(ctx, r.options.Client, have, changes)
		}
		if err == nil {
			r.keep(i, stored)
			return r.prove(ctx, i)
		}
		r.giveBack(i, changes, err)
		if !isOutrun(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return err
}

func (r *Record) isUnsure(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state == recording && r.shards[i].unsure
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
	return s.have, s.take(), nil
}

func (r *Record) keep(i int, stored *corev1.ConfigMap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shards[i].have = stored
}

// giveBack notes what was not written. Who had no right has changed nothing for certain: were that in doubt
// too, every volume of the driver would stay for as long as the right is missing.
func (r *Record) giveBack(i int, changes map[string]*string, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shards[i].redo(changes)
	if !apierrors.IsForbidden(cause) {
		r.shards[i].unsure = true
	}
}

// whole is all that should be in an object that is not there.
func (r *Record) whole(i int) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	data := maps.Clone(r.shards[i].want)
	data[epochKey] = r.epoch
	return data
}

// prove makes sure that the next process will read an object that was not there when this one began. Who
// takes the record over writes to the first object and then reads the others: if the first one is ours
// after the creation, the new one will be read.
func (r *Record) prove(ctx context.Context, i int) error {
	r.mu.Lock()
	s := r.shards[i]
	proven := i == 0 || s.proven || s.have == nil || r.state != recording
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
		if err := r.checkEpoch(found); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shards[i].adopt(found)
	return nil
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
