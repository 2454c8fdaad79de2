// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// slowAPI answers writes after a while, in the time of the bubble.
type slowAPI struct {
	*kit.API
	took time.Duration
}

func (s slowAPI) Patch(ctx context.Context, r kube.Resource, key kube.Key, body kube.PatchBody, into kube.Object) error {
	time.Sleep(s.took)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.API.Patch(ctx, r, key, body, into)
}

// bubble is a record in a world with its own time.
func bubble(t *testing.T, edits ...func(*attempt.Options)) (*attempt.Record, *kit.API) {
	t.Helper()
	api := kit.NewAPI(clock.RealClock{}, &kit.Log{})
	options := attempt.Options{
		Client: slowAPI{api, 10 * time.Millisecond}, Clock: clock.RealClock{}, Namespace: "home", Name: "record", Holder: "a", Linger: attempt.Linger,
	}
	for _, edit := range edits {
		edit(&options)
	}
	return attempt.New(options), api
}

func written(api *kit.API) (n int) {
	for _, r := range api.Requests() {
		if r.Verb != "get" {
			n++
		}
	}
	return n
}

func keysOf(api *kit.API) []string {
	object, _ := kit.Read[*corev1.ConfigMap](api, first)
	delete(object.Data, "epoch")
	return slices.Sorted(maps.Keys(object.Data))
}

// TestGroupCommit: many entries at once cost few writes, for a burst and for a steady stream; one alone waits for its own write and
// for nothing else. Catches one write for each entry, and a fixed delay.
func TestGroupCommit(t *testing.T) {
	for name, row := range map[string]struct {
		every time.Duration
		most  int
	}{"a burst": {0, 6}, "a steady stream": {5 * time.Millisecond, 20}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, api := bubble(t)
				if err := r.Begin(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				before := written(api)
				var all sync.WaitGroup
				for i := range 100 {
					time.Sleep(row.every)
					all.Go(func() {
						if err := r.Put(t.Context(), types.UID(fmt.Sprint(i)), attempt.Document{Body: "x"}); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				n := written(api) - before
				t.Logf("%d writes for 100 entries", n)
				if n > row.most {
					t.Errorf("%d writes for 100 entries, want %d at most", n, row.most)
				}
				for i := range 100 {
					r.Remove(types.UID(fmt.Sprint(i)))
				}
				if err := r.Sweep(t.Context()); err != nil || written(api)-before != n+1 {
					t.Error("one write takes all off", err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r, _ := bubble(t)
		if err := r.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			time.Sleep(time.Second)
			began := time.Now()
			if err := r.Put(t.Context(), types.UID(began.String()), attempt.Document{Body: "x"}); err != nil || time.Since(began) != 10*time.Millisecond {
				t.Error("one alone took", time.Since(began), err)
			}
		}
	})
}

// TestGroupGoesOn: one who gives up waiting, even when it is its turn to write, leaves nobody behind.
func TestGroupGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := bubble(t)
		if err := r.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			all.Go(func() {
				err := r.Put(ctx, types.UID(fmt.Sprint(i)), attempt.Document{Body: "x"})
				if err != nil && (i%3 != 0 || !errors.Is(err, context.Canceled)) && !errors.Is(err, context.Canceled) {
					t.Error(i, err)
				}
			})
			if i%3 == 0 {
				time.AfterFunc(time.Duration(i)*time.Millisecond, cancel)
			}
			time.Sleep(3 * time.Millisecond)
		}
		all.Wait()
		time.Sleep(time.Second)
		if err := r.Put(t.Context(), "last", attempt.Document{Body: "x"}); err != nil {
			t.Error(err)
		}
	})
}

// TestRun: what is over leaves the record by itself, what could not be written is written later, a right that comes is used, and
// the end of the work leaves nothing behind that is over.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, api := bubble(t)
		release := api.Deny("create", configMaps)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		if err := r.AwaitBegun(t.Context()); err != nil {
			t.Fatal(err)
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(r.Put(t.Context(), "u1", attempt.Document{Body: "x"}))
		release()
		time.Sleep(40 * time.Second)
		look := func(want string) {
			t.Helper()
			if got := fmt.Sprint(keysOf(api)); got != want {
				t.Errorf("on record are %s, want %s", got, want)
			}
		}
		look("[u1]")
		must(r.Put(t.Context(), "u2", attempt.Document{Body: "x"}))
		r.Remove("u1")
		time.Sleep(time.Second)
		look("[u1 u2]")
		api.Fail("patch", configMaps, late, 1)
		time.Sleep(5 * time.Second)
		look("[u2]")
		r.Remove("u2")
		time.Sleep(time.Millisecond)
		cancel()
		must(<-ended)
		look("[]")
	})
}

// TestRunEndsWhenTakenOver: who has lost the record says so at once, whatever it is waiting for.
func TestRunEndsWhenTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, api := bubble(t)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(t.Context()) }()
		if err := r.AwaitBegun(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := attempt.New(attempt.Options{Client: api, Clock: clock.RealClock{}, Namespace: "home", Name: "record", Holder: "b"})
		if err := other.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Put(t.Context(), "u1", attempt.Document{Body: "x"}); !errors.Is(err, attempt.ErrForeign) {
			t.Error(err)
		}
		synctest.Wait()
		select {
		case err := <-ended:
			if !errors.Is(err, attempt.ErrForeign) {
				t.Error(err)
			}
		default:
			t.Error("it goes on")
		}
	})
}

// TestRunWaitsForTheAPI: while the record cannot be read nothing begins, and the end is not held up.
func TestRunWaitsForTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, api := bubble(t)
		api.Fail("get", configMaps, late, 3)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		began := time.Now()
		if err := r.AwaitBegun(t.Context()); err != nil || time.Since(began) < 3*time.Second {
			t.Error("begun after", time.Since(began), err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
