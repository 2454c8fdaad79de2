// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/examples/driver/script"
	"github.com/csi-tandem/csi-tandem/examples/driver/server"
)

func (r *rig) create(name string) error {
	_, err := r.CreateVolume(r.ctx, ask(name, mib))
	return err
}

func TestFailDoesNothing(t *testing.T) {
	r := start(t, plain)
	_, err := r.control.Fail(r.ctx, control.On("CreateVolume").About("bad").After(1).Times(2), codes.Internal)
	must(t, err)
	for i, want := range []codes.Code{codes.OK, codes.Internal, codes.Internal, codes.OK} {
		name := []string{"bad1", "bad2", "bad2", "bad2"}[i]
		wantCode(t, r.create(name), want)
		wantCode(t, r.create("good"), codes.OK)
		if got, want := len(r.inventory(t).Volumes), []int{2, 2, 2, 3}[i]; got != want {
			t.Errorf("after call %d: %d volumes, want %d", i+1, got, want)
		}
	}
}

func TestCommitThenFailDoesTheWork(t *testing.T) {
	r := start(t, plain)
	_, err := r.control.CommitThenFail(r.ctx, control.On("CreateVolume").Times(1), codes.DeadlineExceeded)
	must(t, err)
	wantCode(t, r.create("v"), codes.DeadlineExceeded)
	made := r.inventory(t).Volumes
	if len(made) != 1 {
		t.Fatalf("%d volumes, want 1", len(made))
	}
	if got := r.volume(t, ask("v", mib)).GetVolumeId(); got != made[0].ID {
		t.Errorf("found %s, want %s", got, made[0].ID)
	}
	// A deletion by id is found by the name of what it deletes.
	_, err = r.control.CommitThenFail(r.ctx, control.On("DeleteVolume").About("v").Times(1), codes.Unavailable)
	must(t, err)
	_, err = r.DeleteVolume(r.ctx, &csi.DeleteVolumeRequest{VolumeId: made[0].ID})
	wantCode(t, err, codes.Unavailable)
	if got := len(r.inventory(t).Volumes); got != 0 {
		t.Errorf("%d volumes, want none", got)
	}
}

// opened waits until so many calls are open, which only the log tells.
func (r *rig) opened(t *testing.T, n int) {
	t.Helper()
	for {
		calls, err := r.control.Calls(r.ctx, "CreateVolume")
		must(t, err)
		open := 0
		for _, c := range calls {
			if c.End.IsZero() {
				open++
			}
		}
		if open == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestHangUntilReleased(t *testing.T) {
	r := start(t, plain)
	id, err := r.control.Hang(r.ctx, control.On("CreateVolume"), 0)
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- r.create("v") }()
	r.opened(t, 1)
	// The specification wants a second call for the name to be refused.
	wantCode(t, r.create("v"), codes.Aborted)
	if got := len(r.inventory(t).Volumes); got != 0 {
		t.Errorf("%d volumes while the call hangs", got)
	}
	must(t, r.control.Release(r.ctx, id))
	must(t, <-done)
	if got := len(r.inventory(t).Volumes); got != 1 {
		t.Errorf("%d volumes, want 1", got)
	}
}

func TestCallersThatGiveUp(t *testing.T) {
	giveUp := func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(r.ctx)
		done := make(chan error, 1)
		go func() {
			_, err := r.CreateVolume(ctx, ask("v", mib))
			done <- err
		}()
		r.opened(t, 1)
		cancel()
		wantCode(t, <-done, codes.Canceled)
	}
	t.Run("a call that hangs is not done", func(t *testing.T) {
		r := start(t, plain)
		_, err := r.control.Hang(r.ctx, control.On("CreateVolume"), 0)
		must(t, err)
		giveUp(t, r)
		r.opened(t, 0)
		if got := len(r.inventory(t).Volumes); got != 0 {
			t.Errorf("%d volumes, want none", got)
		}
	})
	t.Run("a slow call is done all the same", func(t *testing.T) {
		r := start(t, plain)
		id, err := r.control.Lag(r.ctx, control.On("CreateVolume"), time.Hour)
		must(t, err)
		giveUp(t, r)
		wantCode(t, r.create("v"), codes.Aborted)
		must(t, r.control.Release(r.ctx, id))
		r.opened(t, 0)
		if got := len(r.inventory(t).Volumes); got != 1 {
			t.Errorf("%d volumes, want 1", got)
		}
	})
}

func TestLimitQueues(t *testing.T) {
	r := start(t, plain)
	_, err := r.control.Limit(r.ctx, control.On("CreateVolume"), 1)
	must(t, err)
	id, err := r.control.Lag(r.ctx, control.On("CreateVolume").Times(1), time.Hour)
	must(t, err)
	done := make(chan error, 2)
	go func() { done <- r.create("slow") }()
	r.opened(t, 1)
	go func() { done <- r.create("next") }()
	r.opened(t, 2)
	if got := len(r.inventory(t).Volumes); got != 0 {
		t.Errorf("%d volumes while the first is slow", got)
	}
	must(t, r.control.Release(r.ctx, id))
	must(t, <-done)
	must(t, <-done)
}

func TestWorkIsDoneOnce(t *testing.T) {
	r := start(t, plain)
	id, err := r.control.Work(r.ctx, control.On("CreateVolume"), 1, time.Hour)
	must(t, err)
	ctx, cancel := context.WithCancel(r.ctx)
	done := make(chan error, 2)
	go func() {
		_, err := r.CreateVolume(ctx, ask("v", mib))
		done <- err
	}()
	r.opened(t, 1)
	cancel()
	wantCode(t, <-done, codes.Canceled)
	wantCode(t, r.create("v"), codes.Aborted)
	must(t, r.control.Release(r.ctx, id))
	r.opened(t, 0)

	_, err = r.control.Work(r.ctx, control.On("CreateVolume"), 1, 50*time.Millisecond)
	must(t, err)
	began := time.Now()
	for range 2 {
		go func() { done <- r.create("w") }()
		wantCode(t, <-done, codes.OK)
	}
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("the work took %v", took)
	}
	rules, err := r.control.Rules(r.ctx)
	must(t, err)
	if len(rules) != 1 || rules[0].Hits != 2 {
		t.Errorf("rules %+v", rules)
	}
}

func TestDistortions(t *testing.T) {
	r := start(t, plain)
	source := r.volume(t, ask("source", mib)).GetVolumeId()
	req := ask("clone", 2*mib)
	req.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: source}}}
	for d, spoiled := range map[script.Distortion]func(*csi.Volume) bool{
		script.NoVolume:        func(v *csi.Volume) bool { return v == nil },
		script.NoVolumeID:      func(v *csi.Volume) bool { return v != nil && v.VolumeId == "" },
		script.NoContentSource: func(v *csi.Volume) bool { return v != nil && v.ContentSource == nil },
		script.TooSmall:        func(v *csi.Volume) bool { return v.GetCapacityBytes() == mib },
	} {
		_, err := r.control.Distort(r.ctx, control.On("CreateVolume").Times(1), d)
		must(t, err)
		if v := r.volume(t, req); !spoiled(v) {
			t.Errorf("%s left %v", d, v)
		}
		if v := r.volume(t, req); spoiled(v) {
			t.Errorf("%s was not over after one call: %v", d, v)
		}
	}
	for d, spoiled := range map[script.Distortion]func(*csi.Snapshot) bool{
		script.NoSnapshot:   func(s *csi.Snapshot) bool { return s == nil },
		script.NoSnapshotID: func(s *csi.Snapshot) bool { return s != nil && s.SnapshotId == "" },
	} {
		_, err := r.control.Distort(r.ctx, control.On("CreateSnapshot").Times(1), d)
		must(t, err)
		if s := r.snapshot(t, "s", source); !spoiled(s) {
			t.Errorf("%s left %v", d, s)
		}
	}
}

func TestForgetAnswersAsIfItHadNeverHeard(t *testing.T) {
	r := start(t, plain)
	first := r.volume(t, ask("v", mib)).GetVolumeId()
	snap := r.snapshot(t, "s", first).GetSnapshotId()
	must(t, r.control.Forget(r.ctx, "s"))
	_, err := r.GetSnapshot(r.ctx, &csi.GetSnapshotRequest{SnapshotId: snap})
	wantCode(t, err, codes.NotFound)
	must(t, r.control.Forget(r.ctx, first))
	if second := r.volume(t, ask("v", mib)).GetVolumeId(); second == first {
		t.Error("the volume was not forgotten")
	}
	if err := r.control.Forget(r.ctx, "nope"); err == nil {
		t.Error("something unknown was forgotten")
	}
}

func TestLogShowsCallsWithoutSecrets(t *testing.T) {
	r := start(t, func(o *server.Options) {
		o.Secrets, o.SecretMethods = map[string]string{"token": "S3CR3T"}, []string{"CreateVolume"}
	})
	req := ask("v", mib)
	_, err := r.CreateVolume(r.ctx, req)
	wantCode(t, err, codes.Unauthenticated)
	req.Secrets = map[string]string{"token": "WR0NG"}
	_, err = r.CreateVolume(r.ctx, req)
	wantCode(t, err, codes.Unauthenticated)
	req.Secrets["token"] = "S3CR3T"
	must(t, err2(r.CreateVolume(r.ctx, req)))
	calls, err := r.control.Calls(r.ctx, "CreateVolume")
	must(t, err)
	var got []codes.Code
	for _, c := range calls {
		got = append(got, c.Code)
		if strings.Contains(string(c.Request)+c.Message, "S3CR3T") || strings.Contains(string(c.Request)+c.Message, "WR0NG") {
			t.Errorf("a secret is in the log: %+v", c)
		}
	}
	if want := []codes.Code{codes.Unauthenticated, codes.Unauthenticated, codes.OK}; !slices.Equal(got, want) {
		t.Errorf("codes %v, want %v", got, want)
	}
	last := string(calls[len(calls)-1].Request)
	for _, part := range []string{`"name":"v"`, script.Hash("S3CR3T"), `"token"`} {
		if !strings.Contains(last, part) {
			t.Errorf("%s has no %s", last, part)
		}
	}
	must(t, r.control.Reset(r.ctx))
	if calls, err := r.control.Calls(r.ctx, ""); err != nil || len(calls) > 0 {
		t.Errorf("after a reset: %v, %v", calls, err)
	}
}

func err2(_ any, err error) error { return err }
