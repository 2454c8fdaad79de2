// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// latencies are the waits of one claim, in the order in which they pass.
var latencies = []string{"claim → driver's answer", "answer → volume written", "answer → bound", "claim → bound"}

// runLatency makes one claim after the other on an idle cluster and tells where the time of each goes.
func runLatency(ctx context.Context, b *bench) error {
	if err := b.hirePair(ctx); err != nil {
		return err
	}
	b.say("warming up")
	if _, err := b.run(ctx, b.lifePhases("warm")[0], warmUp); err != nil {
		return err
	}
	b.driver.be(b.o.lag, 0)
	waits := make([][2][]time.Time, len(latencies))
	for _, name := range names("alone", b.o.rounds) {
		moments, err := b.alone(ctx, name)
		if err != nil {
			return err
		}
		for i, wait := range [][2]time.Time{{moments[0], moments[1]}, {moments[1], moments[2]}, {moments[1], moments[3]}, {moments[0], moments[3]}} {
			waits[i][0], waits[i][1] = append(waits[i][0], wait[0]), append(waits[i][1], wait[1])
		}
	}
	t := &table{head: []string{"wait", "p50", "p99", "claims"}}
	for i, what := range latencies {
		pace := paceOf(waits[i][0], waits[i][1])
		t.add(what, seconds(pace.P50), seconds(pace.P99), fmt.Sprint(b.o.rounds))
	}
	fmt.Printf("\n%s, %s: one claim at a time on an idle cluster\n\n", b.o.label, machine())
	t.text(os.Stdout)
	return b.o.keep("latency", t)
}

// pause is how long the cluster is left idle before each claim.
const pause = 500 * time.Millisecond

// alone provisions one claim and tells when it was asked for, answered by the driver, written, and bound.
func (b *bench) alone(ctx context.Context, name string) (moments [4]time.Time, err error) {
	if !rest(ctx, pause) {
		return moments, context.Cause(ctx)
	}
	moments[0] = time.Now()
	claim, err := b.stage.Kube.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, claimOf(name, className), metav1.CreateOptions{})
	if err != nil {
		return moments, err
	}
	if err := b.await(ctx, []string{name}, written, bound); err != nil {
		return moments, err
	}
	moments[1] = b.driver.answeredAt("pvc-" + string(claim.UID))
	if moments[1].IsZero() {
		return moments, fmt.Errorf("claim %s is bound, and the driver was never asked for pvc-%s", name, claim.UID)
	}
	moments[2], _ = b.eyes.at(written, name)
	moments[3], _ = b.eyes.at(bound, name)
	return moments, nil
}

// rest waits, and says whether there was time for it.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
