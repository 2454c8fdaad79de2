// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
)

// phase is one thing that is done to many objects at once.
type phase struct {
	name string
	// prefix names the objects, with a number behind.
	prefix string
	do     func(ctx context.Context, name string) error
	// ends are the moments that all must have come until an object is done.
	ends []moment
	// isClaim is for objects that are bound besides.
	isClaim bool
	// method is what the driver is asked once for each object, or empty.
	method string
	// isMeasured is false for warming up, of which nobody wants a profile.
	isMeasured bool
}

// names are those of the objects of a phase.
func names(prefix string, count int) []string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return all
}

// run does it to all objects and waits until they are done and everybody is quiet.
func (b *bench) run(ctx context.Context, p phase, count int) (Row, error) {
	row := Row{Phase: p.name, Objects: count, Programs: map[string]Cost{}, ControlPlane: map[string]float64{}}
	objects := names(p.prefix, count)
	moments := p.ends
	if p.isClaim {
		moments = append(moments[:len(moments):len(moments)], bound)
	}
	l, err := b.newLedger()
	if err != nil {
		return row, err
	}
	b.driver.forget()
	before := b.usages()
	profiled := b.profile(ctx, p)
	err = b.each(ctx, objects, func(ctx context.Context, name string) error {
		b.eyes.note(began, name+"/"+p.name)
		return p.do(ctx, name)
	})
	if err == nil {
		err = b.await(ctx, objects, moments...)
	}
	if err == nil {
		err = b.settle(ctx, l)
	}
	if profileErr := profiled(); err == nil {
		err = profileErr
	}
	if err != nil {
		return row, fmt.Errorf("%s: %w", p.name, err)
	}
	row.Done = b.pace(p, objects, p.ends...)
	if p.isClaim {
		pace := b.pace(p, objects, bound)
		row.Bound = &pace
	}
	b.bill(&row, l, before)
	if p.method != "" {
		all, most := b.driver.count(p.method)
		row.Calls, row.CallsMost = float64(all)/float64(count), most
	}
	return row, nil
}

// each does something to many objects, so many at a time as requests are allowed.
func (b *bench) each(ctx context.Context, objects []string, do func(context.Context, string) error) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(b.o.writers)
	for _, name := range objects {
		group.Go(func() error { return do(inner, name) })
	}
	return group.Wait()
}

// pace takes the latest of the moments for the end of an object.
func (b *bench) pace(p phase, objects []string, moments ...moment) Pace {
	var begins, ends []time.Time
	for _, name := range objects {
		begin, _ := b.eyes.at(began, name+"/"+p.name)
		var end time.Time
		for _, what := range moments {
			if t, ok := b.eyes.at(what, name); ok && t.After(end) {
				end = t
			}
		}
		begins, ends = append(begins, begin), append(ends, end)
	}
	return paceOf(begins, ends)
}

// usages are those of the programs and of the control plane, by name; peaks begin anew.
func (b *bench) usages() map[string]usage {
	all := map[string]usage{}
	for name, pid := range b.processes() {
		all[name] = usageOf(pid)
		forgetPeak(pid)
	}
	return all
}

func (b *bench) processes() map[string]int {
	all := map[string]int{}
	for _, m := range b.crew {
		all[m.name] = m.process.ID()
	}
	for _, part := range []controlplane.Part{controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager, controlplane.Scheduler} {
		all[string(part)] = b.stage.Cluster.ProcessID(part)
	}
	return all
}

// bill fills in what was taken and asked for since before.
func (b *bench) bill(row *Row, l *ledger, before map[string]usage) {
	after := map[string]usage{}
	for name, pid := range b.processes() {
		after[name] = usageOf(pid)
	}
	seconds := func(name string) float64 { return (after[name].cpu - before[name].cpu).Seconds() }
	for _, m := range b.crew {
		row.Programs[m.name] = Cost{Seconds: seconds(m.name), Peak: mebibytes(after[m.name].peak), Requests: l.of(m.user)}
		delete(after, m.name)
	}
	for part := range after {
		row.ControlPlane[part] = seconds(part)
	}
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
