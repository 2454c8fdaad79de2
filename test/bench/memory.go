// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
)

// calm is how long a process has to come to rest after its start until its memory is looked at.
const calm = 30 * time.Second

// starts is how often the first claim is measured: what else the machine does at that moment makes half of a single figure.
const starts = 5

// memoryRun is one run of the mode memory.
type memoryRun struct {
	*bench
	table table
	// before are the resident sets of the step before, by program.
	before map[string]int64
}

// runMemory starts the pair on an empty cluster and then again each time there is more in it.
func runMemory(ctx context.Context, b *bench) error {
	r := &memoryRun{bench: b, table: table{head: []string{"in the cluster"}}}
	if err := r.weigh(ctx, "nothing", 0); err != nil {
		return err
	}
	// The controllers would work on every object while it is being made up.
	if err := b.stage.Cluster.StopPart(controlplane.ControllerManager); err != nil {
		return err
	}
	volumes, foreign := names("held", b.o.volumes), names("foreign", b.o.foreign)
	for _, step := range []struct {
		what  string
		count int
		fill  func() error
	}{
		{"nodes", b.o.nodes, func() error { return b.fillNodes(ctx) }},
		{"bound volumes", b.o.volumes, func() error {
			return b.fill(ctx, "bound volumes", volumes, func(ctx context.Context, name string) error {
				return b.boundVolume(ctx, name, driverName, className)
			})
		}},
		{"bound volumes of another driver", b.o.foreign, func() error {
			return b.fill(ctx, "bound volumes of another driver", foreign, func(ctx context.Context, name string) error {
				return b.boundVolume(ctx, name, bareDriver, bareClass)
			})
		}},
		{"snapshots", b.o.snapshots, func() error {
			return b.fill(ctx, "snapshots", volumes[:b.o.snapshots], b.readySnapshot)
		}},
	} {
		if step.count == 0 {
			continue
		}
		if err := step.fill(); err != nil {
			return err
		}
		if err := r.weigh(ctx, fmt.Sprintf("and %d %s", step.count, step.what), step.count); err != nil {
			return err
		}
	}
	served, err := r.firstClaims(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s, %s: memory at rest, and the most since the start\n\n", b.o.label, machine())
	r.table.text(os.Stdout)
	first := fmt.Sprintf("From the start of the provisioner to the volume of a claim that waits, in %d starts: %s.", starts, strings.Join(served, ", "))
	fmt.Printf("\n%s\n", first)
	return b.o.keep("memory", &r.table, first)
}

// weigh starts the programs, waits until they are calm, and ends them.
func (r *memoryRun) weigh(ctx context.Context, what string, count int) error {
	r.say("weighing with %s", what)
	if err := r.hirePair(ctx); err != nil {
		return err
	}
	if !rest(ctx, calm) {
		return context.Cause(ctx)
	}
	if err := r.watchOver(); err != nil {
		return err
	}
	if len(r.table.head) == 1 {
		for _, m := range r.crew {
			r.table.head = append(r.table.head, m.name, "most", "for each")
		}
		r.table.head = append(r.table.head, "together")
	}
	cells, sum, now := []string{what}, int64(0), map[string]int64{}
	for _, m := range r.crew {
		u := usageOf(m.process.ID())
		now[m.name] = u.resident
		sum += u.resident
		grown := ""
		if count > 0 {
			grown = fmt.Sprintf("%.2fKi", float64(u.resident-r.before[m.name])/1024/float64(count))
		}
		cells = append(cells, fmt.Sprintf("%.0fMi", mebibytes(u.resident)), fmt.Sprintf("%.0fMi", mebibytes(u.peak)), grown)
	}
	r.table.add(append(cells, fmt.Sprintf("%.0fMi", mebibytes(sum)))...)
	r.before = now
	for len(r.crew) > 0 {
		r.dismiss(r.crew[0])
	}
	return nil
}

// firstClaims starts the pair several times while a claim waits, and measures how long each start took to serve it.
func (r *memoryRun) firstClaims(ctx context.Context) ([]string, error) {
	if err := r.stage.Cluster.StartPart(ctx, controlplane.ControllerManager); err != nil {
		return nil, err
	}
	var all []string
	for i := range starts {
		served, err := r.firstClaim(ctx, fmt.Sprint("first-", i))
		if err != nil {
			return nil, err
		}
		r.say("from the start to the first claim served: %s", seconds(served.Seconds()))
		all = append(all, seconds(served.Seconds()))
		for len(r.crew) > 0 {
			r.dismiss(r.crew[0])
		}
	}
	return all, nil
}

// firstClaim makes a claim that the controllers have seen, and measures from the start of the programs to its volume.
func (r *memoryRun) firstClaim(ctx context.Context, name string) (time.Duration, error) {
	claims := r.stage.Kube.CoreV1().PersistentVolumeClaims(namespace)
	if _, err := claims.Create(ctx, claimOf(name, className), metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	r.say("waiting until the controllers ask for a volume")
	err := r.until(ctx, time.Second, func() (bool, error) {
		claim, err := claims.Get(ctx, name, metav1.GetOptions{})
		return err == nil && claim.Annotations["volume.kubernetes.io/storage-provisioner"] != "", err
	})
	if err != nil {
		return 0, fmt.Errorf("waiting until the controllers ask for a volume: %w", err)
	}
	if err := r.quiet(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := r.hirePair(ctx); err != nil {
		return 0, err
	}
	profiled := r.profile(ctx, phase{name: name, isMeasured: true})
	if err := r.await(ctx, []string{name}, written); err != nil {
		return 0, err
	}
	if err := profiled(); err != nil {
		return 0, err
	}
	end, _ := r.eyes.at(written, name)
	return end.Sub(began), nil
}

// quiet waits until the controllers, which have just been started, have looked at all that was made up meanwhile.
func (r *memoryRun) quiet(ctx context.Context) error {
	r.say("waiting until the controllers have nothing to do")
	const look = 3 * time.Second
	used := func() time.Duration { return usageOf(r.stage.Cluster.ProcessID(controlplane.ControllerManager)).cpu }
	before := used()
	if !rest(ctx, look) {
		return context.Cause(ctx)
	}
	return r.until(ctx, look, func() (bool, error) {
		now := used()
		worked := now - before
		before = now
		return worked < look/10, nil
	})
}
