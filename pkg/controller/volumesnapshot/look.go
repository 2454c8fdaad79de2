// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"context"
	"fmt"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// read does a step that only reads. False means that the step does not.
func (r *round) read(ctx context.Context, step snapshot.SnapshotStep) (next, bool, error) {
	var n next
	var err error
	switch step := step.(type) {
	case snapshot.FetchSnapshot:
		n, err = r.fetchSnapshot(ctx)
	case snapshot.FetchContent:
		n, err = r.fetchContent(ctx, step.Name)
	case snapshot.FetchVolume:
		err = r.fetchVolume(ctx, step.Name)
	default:
		return n, false, nil
	}
	return n, true, err
}

// suppose takes the first writes of a snapshot as done, so that what comes after them can be told. False
// means that what follows the step depends on others.
func (r *round) suppose(step snapshot.SnapshotStep) bool {
	switch step := step.(type) {
	case snapshot.Protect:
		s := r.snapshot.DeepCopy()
		kube.AddFinalizer(s, step.Finalizers...)
		if step.Class != "" {
			s.Spec.VolumeSnapshotClassName = &step.Class
		}
		r.ownSnapshot, r.snapshotLive = s, true
	case snapshot.ProtectSource:
		claim := r.source.DeepCopy()
		kube.AddFinalizer(claim, wellknown.FinalizerSourceClaim)
		r.ownSource = claim
	default:
		return false
	}
	return true
}

// Look decides about a snapshot as Reconcile does for that scope, and does nothing: it gives the input and
// the steps up to the one that would wait or write. Protection, which would come first, is taken as done.
// There are no steps for a snapshot that does not exist.
func (c *Controller) Look(ctx context.Context, key reconcile.Key, scope snapshot.Scope) (snapshot.SnapshotInput, []snapshot.SnapshotStep, error) {
	r := &round{Controller: c, scope: scope, key: kube.Key{Namespace: key.Namespace, Name: key.Name}}
	var steps []snapshot.SnapshotStep
	for range maxSteps {
		in, ok := r.gather()
		if !ok {
			return in, nil, nil
		}
		step := snapshot.NextSnapshotStep(in)
		steps = append(steps, step)
		n, reads, err := r.read(ctx, step)
		switch {
		case err != nil:
			return in, steps, err
		case n.ends, !reads && !r.suppose(step):
			return in, steps, nil
		}
	}
	return snapshot.SnapshotInput{}, steps, fmt.Errorf("snapshot %s: no decision after %d steps", key, maxSteps)
}

// FetchRival looks once for a sign that somebody else binds; empty means that there is none.
func (s *Stance) FetchRival(ctx context.Context) string {
	why, _ := s.findRival(ctx)
	return why
}
