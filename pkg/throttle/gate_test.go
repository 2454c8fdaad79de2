// SPDX-License-Identifier: Apache-2.0

package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted answers each call by a function of its operation and object.
type scripted struct {
	play func(ctx context.Context, op fault.Operation, name string) error
}

func (s *scripted) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.Volume, error) {
	return &csi.Volume{VolumeId: r.GetName()}, s.play(ctx, fault.CreateVolume, r.GetName())
}

func (s *scripted) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) error {
	return s.play(ctx, fault.DeleteVolume, r.GetVolumeId())
}

func (s *scripted) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.Snapshot, error) {
	return &csi.Snapshot{SnapshotId: r.GetName()}, s.play(ctx, fault.CreateSnapshot, r.GetName())
}

func (s *scripted) DeleteSnapshot(ctx context.Context, r *csi.DeleteSnapshotRequest) error {
	return s.play(ctx, fault.DeleteSnapshot, r.GetSnapshotId())
}

func (s *scripted) GetSnapshot(ctx context.Context, r *csi.GetSnapshotRequest) (*csi.Snapshot, error) {
	return &csi.Snapshot{SnapshotId: r.GetSnapshotId()}, s.play(ctx, fault.GetSnapshot, r.GetSnapshotId())
}

func (s *scripted) ListSnapshots(ctx context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	return &csi.ListSnapshotsResponse{}, s.play(ctx, fault.ListSnapshots, r.GetSnapshotId())
}

func (s *scripted) GetCapacity(ctx context.Context, _ *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	return &csi.GetCapacityResponse{AvailableCapacity: 7}, s.play(ctx, fault.GetCapacity, "")
}

const deadline = 10 * time.Second

func gates(play func(ctx context.Context, op fault.Operation, name string) error, options throttle.Options) *throttle.Driver {
	options.Deadline, options.Clock = deadline, clock.RealClock{}
	return throttle.New(&scripted{play}, options)
}

func create(ctx context.Context, d *throttle.Driver, name string) error {
	_, err := d.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: name})
	return err
}

// each makes one call of each operation.
func each(ctx context.Context, d *throttle.Driver) map[fault.Operation]error {
	result := map[fault.Operation]error{}
	_, result[fault.CreateVolume] = d.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: "x"})
	result[fault.DeleteVolume] = d.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "x"})
	_, result[fault.CreateSnapshot] = d.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "x"})
	result[fault.DeleteSnapshot] = d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: "x"})
	_, result[fault.GetSnapshot] = d.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: "x"})
	_, result[fault.ListSnapshots] = d.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: "x"})
	_, result[fault.GetCapacity] = d.GetCapacity(ctx, &csi.GetCapacityRequest{})
	return result
}

// Each call arrives as what it is, and its failure as what it was.
func TestEveryCallPasses(t *testing.T) {
	failure := errors.New("as it was")
	for _, want := range []error{nil, failure} {
		var seen []fault.Operation
		d := gates(func(_ context.Context, op fault.Operation, _ string) error {
			seen = append(seen, op)
			return want
		}, throttle.Options{Most: 1})
		for op, got := range each(t.Context(), d) {
			if got != want {
				t.Errorf("%s: %v, want %v", op, got, want)
			}
		}
		all := []fault.Operation{
			fault.CreateVolume, fault.DeleteVolume, fault.CreateSnapshot, fault.DeleteSnapshot, fault.GetSnapshot, fault.ListSnapshots, fault.GetCapacity,
		}
		if diff := cmp.Diff(all, seen); diff != "" {
			t.Error(diff)
		}
	}
}

// Creations that hang, as many as may be, hold up nothing else.
func TestOperationsHaveGatesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := gates(func(ctx context.Context, op fault.Operation, _ string) error {
			if op == fault.CreateVolume || op == fault.CreateSnapshot {
				<-ctx.Done()
			}
			return nil
		}, throttle.Options{Most: 10})
		var hanging sync.WaitGroup
		for i := range 30 {
			hanging.Go(func() { _ = create(ctx, d, fmt.Sprint(i)) })
			hanging.Go(func() { _, _ = d.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: fmt.Sprint(i)}) })
		}
		synctest.Wait()
		began := time.Now()
		if err := errors.Join(
			d.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "x"}), d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: "x"}),
		); err != nil || time.Since(began) > 0 {
			t.Errorf("B045 deletions waited %v behind creations: %v", time.Since(began), err)
		}
		cancel()
		hanging.Wait()
	})
}

// The deadline of a call must not begin while it waits, nor must the order be lost.
func TestTurnsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		d := gates(func(ctx context.Context, _ fault.Operation, name string) error {
			if _, has := ctx.Deadline(); has {
				t.Error("a deadline has begun before the call")
			}
			time.Sleep(time.Second)
			order = append(order, name)
			return nil
		}, throttle.Options{Most: 1})
		var all sync.WaitGroup
		var want []string
		for i := range 20 {
			name := fmt.Sprintf("%02d", i)
			want = append(want, name)
			all.Go(func() {
				if err := create(t.Context(), d, name); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if diff := cmp.Diff(want, order); diff != "" {
			t.Error(diff)
		}
	})
}

// Flows take turns, however many calls one of them has.
func TestFlowsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		d := gates(func(_ context.Context, _ fault.Operation, name string) error {
			time.Sleep(time.Second)
			order = append(order, name[:1])
			return nil
		}, throttle.Options{Most: 1})
		var all sync.WaitGroup
		for _, flow := range []string{"a", "b", "c"} {
			n := 4
			if flow == "a" {
				n = 40
			}
			for i := range n {
				all.Go(func() { _ = create(throttle.WithFlow(t.Context(), flow), d, fmt.Sprint(flow, i)) })
			}
			synctest.Wait()
		}
		all.Wait()
		if got := strings.Join(order[:12], ""); strings.Count(got, "b") != 4 || strings.Count(got, "c") < 3 {
			t.Errorf("the first twelve turns were %s", got)
		}
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		free := make(chan struct{})
		d := gates(func(context.Context, fault.Operation, string) error { calls.Add(1); <-free; return nil }, throttle.Options{Most: 1})
		var first sync.WaitGroup
		first.Go(func() { _ = create(t.Context(), d, "a") })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if err := create(ctx, d, "b"); !errors.Is(err, context.DeadlineExceeded) || fault.Of(err) != nil || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v, which must not look like an answer of the driver", time.Since(began), err)
		}
		close(free)
		first.Wait()
		if err := create(t.Context(), d, "c"); err != nil || calls.Load() != 2 {
			t.Errorf("%d calls, %v: who gave up must not be called for, nor keep the place", calls.Load(), err)
		}
	})
}

// A panic in a call must not cost its place.
func TestPlaceSurvivesPanic(t *testing.T) {
	panics := true
	d := gates(func(context.Context, fault.Operation, string) error {
		if panics {
			panic("x")
		}
		return nil
	}, throttle.Options{Most: 1})
	func() {
		defer func() { _ = recover() }()
		_ = create(t.Context(), d, "a")
	}()
	panics = false
	if err := create(t.Context(), d, "a"); err != nil {
		t.Error(err)
	}
}

// What was read before a deletion is old when it had to wait. Catches a call that is made on the strength of it.
func TestWhatPermitsACallIsAskedAgainAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, asked int
		d := gates(func(context.Context, fault.Operation, string) error { calls++; time.Sleep(time.Minute); return nil }, throttle.Options{Most: 1})
		changed := errors.New("changed")
		ctx := throttle.WithRecheck(t.Context(), func(context.Context) error { asked++; return changed })
		var first sync.WaitGroup
		first.Go(func() {
			if err := create(ctx, d, "a"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := create(ctx, d, "b"); err != changed || asked != 1 || calls != 1 {
			t.Errorf("%v, asked %d times, %d calls", err, asked, calls)
		}
		first.Wait()
		if err := create(ctx, d, "b"); err != nil || asked != 1 || calls != 2 {
			t.Errorf("what did not wait is not asked for: %v, asked %d times, %d calls", err, asked, calls)
		}
		glance := throttle.WithGlance(t.Context(), func(context.Context) error { asked++; return changed })
		if err := create(glance, d, "b"); err != changed || asked != 2 || calls != 2 {
			t.Errorf("what costs nothing is asked for always: %v, asked %d times, %d calls", err, asked, calls)
		}
	})
}

// (B045) An object never has two calls out, whoever asks.
func TestObjectHasOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, worst atomic.Int32
		d := gates(func(context.Context, fault.Operation, string) error {
			worst.Store(max(worst.Load(), out.Add(1)))
			time.Sleep(time.Second)
			out.Add(-1)
			return nil
		}, throttle.Options{Most: 10})
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() { _ = create(throttle.WithFlow(t.Context(), fmt.Sprint(i)), d, "same") })
		}
		all.Wait()
		if worst.Load() != 1 {
			t.Errorf("B045 %d at once", worst.Load())
		}
	})
}

// (B045) The repeat of a call that the deadline ended is told when it may come, and is held when it comes before. A
// failure that is over is left to the queue.
func TestRepeatsAreTimed(t *testing.T) {
	for _, c := range []struct {
		name  string
		code  codes.Code
		asked bool
	}{
		{"B045 late", codes.DeadlineExceeded, true},
		{"B045 busy", codes.Aborted, true},
		{"refused", codes.InvalidArgument, false},
		{"vague", codes.Internal, false},
		{"away", codes.Unavailable, false},
		{"full", codes.ResourceExhausted, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failure error = fault.New(fault.CreateVolume, status.Error(c.code, "x"))
				d := gates(func(context.Context, fault.Operation, string) error { return failure }, throttle.Options{Most: 10})
				err := create(t.Context(), d, "a")
				after, asked := fault.RetryDelay(err)
				if asked != c.asked || fault.Of(err) == nil || asked && after <= 0 {
					t.Fatalf("%v: asks for %v (%v)", err, after, asked)
				}
				failure = nil
				began := time.Now()
				if err := create(t.Context(), d, "a"); err != nil || time.Since(began) != after {
					t.Errorf("held for %v, want %v: %v", time.Since(began), after, err)
				}
				if err := create(t.Context(), d, "a"); err != nil || time.Since(began) != after {
					t.Errorf("what is settled is not held: %v, %v", time.Since(began), err)
				}
			})
		})
	}
}

// What is given up without an answer must not keep its place for ever.
func TestPlaceOfWhatNobodyAsksForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := gates(func(_ context.Context, _ fault.Operation, name string) error {
			if strings.HasPrefix(name, "lost") {
				return fault.New(fault.CreateVolume, status.Error(codes.DeadlineExceeded, "x"))
			}
			return nil
		}, throttle.Options{Most: 2})
		for i := range 2 {
			if create(t.Context(), d, fmt.Sprint("lost", i)) == nil {
				t.Fatal("no failure")
			}
		}
		began := time.Now()
		if err := create(t.Context(), d, "next"); err != nil || time.Since(began) > deadline {
			t.Errorf("waited %v: %v", time.Since(began), err)
		}
	})
}

func TestFixedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, worst atomic.Int32
		d := gates(func(context.Context, fault.Operation, string) error {
			worst.Store(max(worst.Load(), out.Add(1)))
			time.Sleep(time.Second)
			out.Add(-1)
			return fault.New(fault.CreateVolume, status.Error(codes.Unavailable, "x"))
		}, throttle.Options{Most: 100, Fixed: 3})
		var all sync.WaitGroup
		began := time.Now()
		for i := range 30 {
			all.Go(func() { _ = create(throttle.WithFlow(t.Context(), fmt.Sprint(i%4)), d, fmt.Sprint(i)) })
		}
		all.Wait()
		if worst.Load() != 3 || time.Since(began) != 10*time.Second {
			t.Errorf("%d at once, in %v", worst.Load(), time.Since(began))
		}
	})
}
