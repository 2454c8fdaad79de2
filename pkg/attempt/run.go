// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
)

// Run begins the record and tends it until the context ends: it takes off what is over, writes what could
// not be written, puts back what somebody has removed, and looks for the right to write when there was none. Its error is ErrForeign: then all work has to end.
func (r *Record) Run(ctx context.Context) error {
	if err := r.beginUntilDone(ctx); err != nil {
		return err
	}
	ticker := r.options.Clock.NewTicker(healing)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return r.end(ctx)
		case <-r.lost:
			return ErrForeign
		case <-r.leaving:
			if err := r.tidy(ctx); err != nil {
				return err
			}
		case <-ticker.C():
			if err := r.heal(ctx); err != nil {
				return err
			}
		}
	}
}

func (r *Record) beginUntilDone(ctx context.Context) error {
	for {
		err := r.Begin(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrForeign):
			return err
		case ctx.Err() != nil:
			return nil
		}
		klog.FromContext(ctx).Error(err, "No volume is made before the record of open attempts is read; trying again", "after", beginning)
		if !r.pause(ctx, beginning) {
			return nil
		}
	}
}

// tidy waits for a quiet moment, in which others may take along what is over, and then sweeps.
func (r *Record) tidy(ctx context.Context) error {
	if !r.pause(ctx, quiet) {
		return r.end(ctx)
	}
	err := r.Sweep(ctx)
	switch {
	case errors.Is(err, ErrForeign):
		return err
	case err != nil && ctx.Err() == nil:
		klog.FromContext(ctx).V(2).Info("the record of open attempts is tidied up later", "err", err)
		r.mu.Lock()
		r.note()
		r.mu.Unlock()
	}
	return nil
}

// heal begins anew when there was no right to write. Else it compares what is on record with what should be: an object that somebody has removed
// is changed by no other write, and this process may be the last that knows what was in it.
func (r *Record) heal(ctx context.Context) error {
	r.mu.Lock()
	ill := r.state == unwritable
	for _, s := range r.shards {
		s.stale = s.stale || len(s.want) > 0
	}
	r.mu.Unlock()
	if !ill {
		return ignoreButForeign(r.Sweep(ctx))
	}
	err := r.Begin(ctx)
	r.mu.Lock()
	healed := r.state == recording
	r.mu.Unlock()
	if err == nil && healed {
		klog.FromContext(ctx).Info("No longer so: open attempts are recorded from now on")
		err = r.Sweep(ctx)
	}
	return ignoreButForeign(err)
}

func ignoreButForeign(err error) error {
	if errors.Is(err, ErrForeign) {
		return err
	}
	return nil // what is not written now is written with the next
}

// end takes off what is over before the next process would look at it.
func (r *Record) end(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return ignoreButForeign(r.Sweep(last))
}

// pause returns false when the context ended first, or the record is lost.
func (r *Record) pause(ctx context.Context, d time.Duration) bool {
	timer := r.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-r.lost:
		return true
	case <-ctx.Done():
		return false
	}
}
