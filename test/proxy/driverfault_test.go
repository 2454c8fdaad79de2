// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestDriverFailures(t *testing.T) {
	for _, row := range []struct {
		name  string
		after bool
		with  Failure
		want  codes.Code
		// done is what the driver did of the call that failed.
		done []string
	}{
		{"before", false, Failure{Code: codes.ResourceExhausted, Message: "full"}, codes.ResourceExhausted, nil},
		{"after", true, Failure{Code: codes.DeadlineExceeded, Message: "late"}, codes.DeadlineExceeded, []string{"create a"}},
		{"lost before", false, Failure{}, codes.Unavailable, nil},
		{"lost after", true, Failure{}, codes.Unavailable, []string{"create a"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newDriverBench(t)
			fail := b.driver.Fail
			if row.after {
				fail = b.driver.FailAfter
			}
			fault := fail(CallMatch{Method: "CreateVolume", Name: "a"}, row.with, 1)
			err := b.create(t.Context(), "a")
			if status.Code(err) != row.want || row.with.Message != "" && status.Convert(err).Message() != row.with.Message {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(row.done, b.fake.effects()); diff != "" {
				t.Errorf("at the driver (-want +got):\n%s", diff)
			}
			// The client library connects again by itself, and others are not meant.
			if err := b.create(soon(t), "b"); err != nil {
				t.Errorf("another: %v", err)
			}
			if err := b.create(t.Context(), "a"); err != nil {
				t.Errorf("the second time: %v", err)
			}
			if fault.Hits() != 1 {
				t.Errorf("hit %d times", fault.Hits())
			}
			first := b.driver.Calls()[0]
			if first.IsAnswered != (row.with.Code != codes.OK) || first.IsAnswered && first.Code != row.want || (first.Effect == 1) != row.after {
				t.Errorf("logged %+v", first)
			}
		})
	}
}

func TestDriverHangsAndDelays(t *testing.T) {
	b := newDriverBench(t)
	hang := b.driver.Hang(CallMatch{Name: "a"}, Always)
	held := b.driver.HangAfter(CallMatch{Name: "b"}, Always)
	ended := make(chan error, 2)
	for _, name := range []string{"a", "b"} {
		go func() { ended <- b.create(soon(t), name) }()
	}
	for _, fault := range []*Fault{hang, held} {
		if err := fault.AwaitHits(soon(t), 1); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"create b"}, b.fake.effects()); diff != "" {
		t.Errorf("at the driver (-want +got):\n%s", diff)
	}
	select {
	case err := <-ended:
		t.Errorf("ended with %v before the release", err)
	default:
	}
	b.driver.ReleaseAll()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	const d = 30 * time.Millisecond
	b.driver.Delay(CallMatch{Method: "DeleteVolume"}, d, 1)
	b.driver.DelayAfter(CallMatch{Method: "DeleteVolume"}, d, 1)
	began := time.Now()
	if _, err := b.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "b"}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*d {
		t.Errorf("took %v", took)
	}
}

func TestCallThatGivesUpWhileItHangsIsNotServedLater(t *testing.T) {
	b := newDriverBench(t)
	hang := b.driver.Hang(CallMatch{Name: "a"}, Always)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.create(ctx, "a") }()
	if err := hang.AwaitHits(soon(t), 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("ended with %v", err)
	}
	logged, err := b.driver.Await(soon(t), func(c Call) bool { return !c.Finished.IsZero() })
	if err != nil || logged.IsAnswered {
		t.Errorf("logged %+v, %v", logged, err)
	}
	hang.Release()
	if got := b.fake.effects(); len(got) > 0 {
		t.Errorf("the driver did %v", got)
	}
}

func TestReadCallNamesWhatItIsAbout(t *testing.T) {
	b := newDriverBench(t)
	_, _ = b.controller.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{SourceVolumeId: "v", Name: "s"})
	_, _ = b.controller.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: "id-s"})
	_, _ = b.controller.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SnapshotId: "id-s", SourceVolumeId: "v"})
	_, _ = b.controller.GetSnapshot(t.Context(), &csi.GetSnapshotRequest{SnapshotId: "id-s"})
	_, _ = b.controller.ControllerModifyVolume(t.Context(), &csi.ControllerModifyVolumeRequest{VolumeId: "id-v"})
	var got []string
	for _, c := range b.driver.Calls() {
		got = append(got, c.Method+" "+c.Name)
	}
	want := []string{
		"CreateSnapshot s", "DeleteSnapshot id-s", "ListSnapshots id-s", "GetSnapshot id-s", "ControllerModifyVolume id-v",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if broken := readCall("/csi.v1.Controller/CreateVolume", []byte{0xff, 0xff}); broken.Name != "" || !broken.IsEffect() {
		t.Errorf("read %+v from what is no message", broken)
	}
}
