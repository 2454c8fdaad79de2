// SPDX-License-Identifier: Apache-2.0

// Package faults shows that nothing leaks and nothing sticks, whatever goes wrong: both sidecars as they are built run beside a
// real driver process and a real control plane, each behind proxies that spoil its requests and calls, and are ended again and
// again.
//
// It owns three proofs: the sidecars are ended around each single effect of each kind of life; many lives go on under random
// faults of API server, driver and processes; and the same for a long time, with memory and goroutines staying flat. What must
// hold at the end does not depend on which faults there were.
//
// It must not know how the sidecars are made; it imports nothing of them.
//
// It stands outside the walks, on the stage and the proxies. What is random follows from a seed that is printed, and can be
// played again, in whole or in parts. Nothing here depends on how long something takes: conditions are waited for.
package faults

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// The variables that steer a run.
const (
	wantedVariable  = "CSI_TANDEM_E2E"
	fullVariable    = "CSI_TANDEM_FULL"
	seedVariable    = "CSI_TANDEM_SEED"
	objectsVariable = "CSI_TANDEM_OBJECTS"
	keepVariable    = "CSI_TANDEM_KEEP"
	shrinkVariable  = "CSI_TANDEM_SHRINK"
	soakVariable    = "CSI_TANDEM_SOAK"
)

// patience is for one condition, and is far more than any takes on a machine that has other things to do.
var patience = duration("CSI_TANDEM_PATIENCE", 2*time.Minute)

// mark begins the lines that are shown also of tests that pass.
const mark = "» "

// show tells figures to whoever watches a run.
func show(format string, args ...any) { fmt.Printf(mark+format+"\n", args...) }

// quick lets the controller manager make up soon for what it has missed of volumes, which it does every 15 seconds otherwise.
var quick = map[controlplane.Part][]string{controlplane.ControllerManager: {"--pvclaimbinder-sync-period=2s"}}

// shared is one control plane for all tests.
var shared struct {
	sync.Once
	stage *stage.Stage
	err   error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.stage != nil {
		code = shared.stage.Leave(code, nil)
	}
	os.Exit(code)
}

func theStage(t *testing.T) *stage.Stage {
	t.Helper()
	if os.Getenv(wantedVariable) != "1" {
		t.Skip("starts a control plane, a driver and both sidecars; set CSI_TANDEM_E2E=1, or run make faults or make crash")
	}
	shared.Do(func() {
		// Not the context of the test that happens to be the first.
		shared.stage, shared.err = stage.Open(context.WithoutCancel(t.Context()), stage.Options{
			Out: os.Stderr, Nodes: []controlplane.Node{{Name: "worker"}}, Args: quick,
		})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.stage
}

func isFull() bool { return os.Getenv(fullVariable) == "1" }

// seed is the one that was asked for, or one that nobody had before.
func seed(t *testing.T) uint64 {
	t.Helper()
	given := os.Getenv(seedVariable)
	if given == "" {
		return uint64(time.Now().UnixNano() / int64(time.Millisecond) % 1_000_000_000)
	}
	number, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedVariable, err)
	}
	return number
}

func number(t *testing.T, variable string, usual int) int {
	t.Helper()
	given := os.Getenv(variable)
	if given == "" {
		return usual
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 {
		t.Fatalf("%s is not a number of one or more: %q", variable, given)
	}
	return n
}

func duration(variable string, usual time.Duration) time.Duration {
	if d, err := time.ParseDuration(os.Getenv(variable)); err == nil && d > 0 {
		return d
	}
	return usual
}

// rest waits, and says whether there was time for it.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// await looks again and again until a condition holds. A failed read is a reason to look again.
func await(ctx context.Context, what string, pace time.Duration, holds func() (bool, string)) error {
	for deadline := time.Now().Add(patience); ; {
		done, why := holds()
		if done {
			return nil
		}
		if time.Now().After(deadline) || !rest(ctx, pace) {
			return fmt.Errorf("waited for %s until %s: %s", patience, what, why)
		}
	}
}

// unreadable is the answer of a condition whose objects could not be read.
func unreadable(err error) (bool, string) { return false, err.Error() }
