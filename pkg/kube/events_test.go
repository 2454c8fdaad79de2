// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// startWriter runs a writer; the result ends it and waits until it has finished.
func startWriter(t *testing.T, h *kit.Harness) (*kube.EventWriter, func()) {
	t.Helper()
	writer := kube.NewEventWriter(h.API, "tandem", "tandem-0", h.Clock)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); writer.Run(ctx, time.Minute) }()
	stop := func() { cancel(); <-done }
	t.Cleanup(stop)
	return writer, stop
}

func events(h *kit.Harness) []*corev1.Event { return kit.All[*corev1.Event](h.API) }

func awaitEvents(t *testing.T, h *kit.Harness, n int) {
	t.Helper()
	await(t, "events", func() bool { return len(events(h)) >= n })
}

func TestEventSaysWhatHappenedToWhat(t *testing.T) {
	h := kit.New(t)
	writer, stop := startWriter(t, h)
	claim := stored(t, h, kit.Claim("data"))
	writer.Warning(claim, "ProvisioningFailed", "no room")
	writer.Normal(kit.NamedContent("c"), "SnapshotReady", "ready")
	stop()
	all := events(h)
	if len(all) != 2 {
		t.Fatalf("%d events", len(all))
	}
	content, data := all[0], all[1]
	if data.Namespace != claim.Namespace || data.Type != "Warning" || data.Reason != "ProvisioningFailed" || data.Message != "no room" ||
		data.InvolvedObject.Kind != "PersistentVolumeClaim" || data.InvolvedObject.APIVersion != "v1" || data.InvolvedObject.UID != claim.UID ||
		data.InvolvedObject.Name != "data" || data.InvolvedObject.Namespace != claim.Namespace {
		t.Errorf("claim: %+v", data)
	}
	if data.Source.Component != "tandem" || data.ReportingInstance != "tandem-0" || data.Count != 1 || !data.LastTimestamp.Time.Equal(kit.Start) {
		t.Errorf("source: %+v", data)
	}
	// Cluster-scoped objects have no namespace; the API takes their events in "default" only.
	if content.Namespace != "default" || content.InvolvedObject.Namespace != "" ||
		content.InvolvedObject.APIVersion != "snapshot.storage.k8s.io/v1" || content.InvolvedObject.Kind != "VolumeSnapshotContent" {
		t.Errorf("content: %+v", content)
	}
}

func TestEventIsToldOnce(t *testing.T) {
	h := kit.New(t)
	writer, stop := startWriter(t, h)
	claim, other := kit.Claim("data"), kit.Claim("other")
	for range 3 {
		writer.Warning(claim, "Failed", "no room")
	}
	writer.Warning(other, "Failed", "no room")   // another object
	writer.Warning(claim, "Waiting", "no room")  // another reason
	writer.Warning(claim, "Failed", "still not") // another cause
	h.Clock.Step(30 * time.Minute)
	writer.Warning(claim, "Failed", "still not")
	h.Clock.Step(31 * time.Minute)
	writer.Warning(claim, "Failed", "still not") // the server has dropped the first by now
	stop()
	if got := events(h); len(got) != 5 {
		t.Errorf("%d events, want 5", len(got))
	}
}

// Drivers put request ids and times into their errors; this would catch one event for each try. In our own
// messages a number is news.
// What several tell alike is one event, each time that it becomes true: the second time as well, and by all of them. Catches a name that is
// the same again, under which the API server shows what was so long ago, and one that is another for each who tells it.
func TestSharedEvents(t *testing.T) {
	h := kit.New(t)
	one, stopOne := startWriter(t, h)
	two, stopTwo := startWriter(t, h)
	claim := stored(t, h, kit.Claim("data"))
	for n, message := range []string{"nobody serves a", "nobody serves b", "nobody serves a"} {
		one.Shared(claim, "Unserved", message)
		two.Shared(claim, "Unserved", message)
		awaitEvents(t, h, n+1)
		h.Clock.Step(time.Minute)
	}
	stopOne()
	stopTwo()
	var newest *corev1.Event
	for _, e := range events(h) {
		if newest == nil || e.LastTimestamp.After(newest.LastTimestamp.Time) {
			newest = e
		}
	}
	if n := len(events(h)); n != 3 || newest.Message != "nobody serves a" {
		t.Errorf("%d events, the newest %+v", n, newest)
	}
}

func TestEventLooksPastRequestIDs(t *testing.T) {
	h := kit.New(t)
	writer, stop := startWriter(t, h)
	claim := kit.Claim("data")
	writer.Warning(claim, "Failed", "rpc error: code = Internal desc = request 41 at 10:00:01 failed")
	writer.Warning(claim, "Failed", "rpc error: code = Internal desc = request 42 at 10:00:03 failed")
	writer.Warning(claim, "Failed", "node worker-1 is full")
	writer.Warning(claim, "Failed", "node worker-2 is full")
	stop()
	if got := events(h); len(got) != 3 {
		t.Errorf("%d events, want 3", len(got))
	}
}

func TestEventMessageIsAlwaysTaken(t *testing.T) {
	h := kit.New(t)
	writer, stop := startWriter(t, h)
	writer.Normal(kit.Claim("long"), "R", strings.Repeat("x", 1020)+"äöü")
	writer.Normal(kit.Claim("broken"), "R", "bad \xff byte")
	stop()
	for _, e := range events(h) {
		if len(e.Message) > 1024 || !utf8.ValidString(e.Message) || strings.ContainsRune(e.Message, utf8.RuneError) {
			t.Errorf("message of %d bytes: %q", len(e.Message), e.Message)
		}
	}
	name := strings.Repeat("n", 253)
	writer.Normal(kit.Claim(name), "R", "a long name")
}

func TestEventIsTriedAgain(t *testing.T) {
	h := kit.New(t)
	h.API.Fail("create", "events", apierrors.NewServiceUnavailable("later"), 2)
	writer, _ := startWriter(t, h)
	writer.Normal(kit.Claim("data"), "R", "m")
	for range 2 {
		await(t, "a wait before the next try", h.Clock.HasWaiters)
		h.Clock.Step(3 * time.Second)
	}
	awaitEvents(t, h, 1)
}

func TestEventWhoseAnswerWasLostIsNotTwofold(t *testing.T) {
	h := kit.New(t)
	h.API.Lose("create", "events", errors.New("connection reset"), 1)
	writer, stop := startWriter(t, h)
	writer.Normal(kit.Claim("data"), "R", "m")
	await(t, "a wait before the next try", h.Clock.HasWaiters)
	h.Clock.Step(3 * time.Second)
	writer.Normal(kit.Claim("data"), "R", "next")
	awaitEvents(t, h, 2)
	stop()
	if got := events(h); len(got) != 2 {
		t.Errorf("%d events, want 2", len(got))
	}
}

func TestEventThatIsRefusedHoldsUpNothing(t *testing.T) {
	h := kit.New(t)
	h.API.Fail("create", "events", apierrors.NewForbidden(kube.ResourceOf[*corev1.Event]().GroupResource(), "", errors.New("no")), 1)
	writer, stop := startWriter(t, h)
	writer.Normal(kit.Claim("data"), "R", "refused")
	writer.Normal(kit.Claim("data"), "R", "taken")
	awaitEvents(t, h, 1)
	stop()
	if got := events(h); len(got) != 1 || got[0].Message != "taken" {
		t.Errorf("events %v", got)
	}
}

// counter takes events and notes their names only.
type counter struct {
	kube.Client
	names map[string]bool
	total int
}

func (c *counter) Create(_ context.Context, _ kube.Resource, obj, _ kube.Object) error {
	c.total++
	c.names[obj.GetName()] = true
	return nil
}

// Nobody takes the events at first: recording must go on all the same.
func TestRecordingNeverBlocks(t *testing.T) {
	c := &counter{names: map[string]bool{}}
	writer := kube.NewEventWriter(c, "tandem", "tandem-0", testingclock.NewFakeClock(kit.Start))
	claim := kit.Claim("data")
	for i := range 10000 {
		writer.Normal(claim, "R", strconv.Itoa(i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	writer.Run(ctx, time.Minute)
	if c.total == 0 || c.total == 10000 || len(c.names) != c.total {
		t.Errorf("%d events under %d names", c.total, len(c.names))
	}
}

// TestEventThatWasNeverWrittenIsToldAgain: what the API server does not have is no repetition. Catches a cause that nobody hears of for an hour, because the
// API server was down when it was told first.
func TestEventThatWasNeverWrittenIsToldAgain(t *testing.T) {
	h := kit.New(t)
	h.API.Fail("create", "events", apierrors.NewServiceUnavailable("later"), 3)
	writer, _ := startWriter(t, h)
	writer.Normal(kit.Claim("data"), "R", "m")
	for range 2 {
		await(t, "a wait before the next try", h.Clock.HasWaiters)
		h.Clock.Step(3 * time.Second)
	}
	await(t, "an event that was given up and is told again", func() bool {
		writer.Normal(kit.Claim("data"), "R", "m")
		return len(events(h)) > 0
	})
}
