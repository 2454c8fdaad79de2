// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestFailAnswersBeforeTheServerSeesIt(t *testing.T) {
	for name, row := range map[string]struct {
		answer Answer
		reason metav1.StatusReason
	}{
		"too many":     {TooMany, metav1.StatusReasonTooManyRequests},
		"broken":       {Broken, metav1.StatusReasonInternalError},
		"unavailable":  {Unavailable, metav1.StatusReasonServiceUnavailable},
		"timed out":    {TimedOut, metav1.StatusReasonTimeout},
		"conflict":     {Conflict, metav1.StatusReasonConflict},
		"not allowed":  {NotAllowed, metav1.StatusReasonForbidden},
		"not found":    {NotFound, metav1.StatusReasonNotFound},
		"unauthorized": {Unauthorized, metav1.StatusReasonUnauthorized},
		"expired":      {Expired, metav1.StatusReasonExpired},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.api.Fail(Match{Verb: "create", Name: "a"}, row.answer, 1)
			response, content, err := b.send(t.Context(), "POST", maps, `{"metadata":{"name":"a"}}`)
			if err != nil {
				t.Fatal(err)
			}
			var status metav1.Status
			if err := json.Unmarshal([]byte(content), &status); err != nil {
				t.Fatalf("%v in %s", err, content)
			}
			if response.StatusCode != row.answer.Code || int(status.Code) != row.answer.Code || status.Reason != row.reason || status.Kind != "Status" {
				t.Errorf("answered %d %+v", response.StatusCode, status)
			}
			if got, want := response.Header.Get("Retry-After") == "1", row.answer.RetryAfter > 0; got != want {
				t.Errorf("Retry-After is %q", response.Header.Get("Retry-After"))
			}
			if got := b.server.effects(); len(got) > 0 {
				t.Errorf("the server did %v", got)
			}
			if code, err := b.create(t.Context(), "a"); err != nil || code != http.StatusCreated {
				t.Errorf("the second time: %d, %v", code, err)
			}
			if effects := b.api.Requests(); effects[0].Effect != 0 || effects[1].Effect != 1 {
				t.Errorf("numbered %d and %d: what the server never saw is no effect", effects[0].Effect, effects[1].Effect)
			}
		})
	}
}

// A client library must understand what is made up here, whatever encoding it asked for.
func TestFailIsUnderstoodByClients(t *testing.T) {
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		b := newBench(t)
		client := b.clientset(t, contentType).CoreV1().ConfigMaps("n")
		b.api.Fail(Match{}, Answer{Code: http.StatusForbidden, Message: "not today"}, 1)
		_, err := client.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "not today") {
			t.Errorf("%s: %v", contentType, err)
		}
		b.api.Fail(Match{}, Conflict, 1)
		if err := client.Delete(t.Context(), "a", metav1.DeleteOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("%s: %v", contentType, err)
		}
	}
}

func TestFailAsOftenAsAskedOrUntilReleased(t *testing.T) {
	b := newBench(t)
	twice := b.api.Fail(Match{Verb: "list"}, Broken, 2)
	always := b.api.Fail(Match{Verb: "create"}, NotAllowed, Always)
	var codes []int
	for range 3 {
		for _, method := range []string{"GET", "POST"} {
			response, _, err := b.send(t.Context(), method, maps, `{"metadata":{"name":"a"}}`)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, response.StatusCode)
		}
	}
	always.Release()
	code, err := b.create(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{500, 403, 500, 403, 200, 403, 201}, append(codes, code)); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
	if twice.Hits() != 2 || always.Hits() != 3 {
		t.Errorf("hit %d and %d times, want 2 and 3", twice.Hits(), always.Hits())
	}
}

func TestFailAfterDoesItFirst(t *testing.T) {
	b := newBench(t)
	b.api.FailAfter(Match{Verb: "create"}, TimedOut, 1)
	b.api.FailAfter(Match{Verb: "get"}, Broken, 1)
	if code, err := b.create(t.Context(), "a"); err != nil || code != http.StatusGatewayTimeout {
		t.Errorf("created: %d, %v", code, err)
	}
	if diff := cmp.Diff([]string{"POST a"}, b.server.effects()); diff != "" {
		t.Errorf("at the server (-want +got):\n%s", diff)
	}
	if response, _, err := b.send(t.Context(), "GET", maps+"/a", ""); err != nil || response.StatusCode != http.StatusInternalServerError {
		t.Errorf("read: %v, %v", response, err)
	}
	logged := b.api.Requests()[0]
	if logged.Code != 504 || logged.Answer != 201 || len(logged.Faults) != 1 {
		t.Errorf("logged %+v", logged)
	}
	if sent, _ := b.api.Writes(Match{}); sent != 1 {
		t.Errorf("counted %d writes, want the one whose answer was false", sent)
	}
}

func TestLost(t *testing.T) {
	b := newBench(t)
	lines := b.watch(t)
	b.api.Fail(Match{Name: "never-sent"}, Lost, 1)
	b.api.FailAfter(Match{Name: "sent"}, Lost, Always)
	for _, name := range []string{"never-sent", "sent"} {
		if code, err := b.create(t.Context(), name); err == nil {
			t.Errorf("%s was answered %d", name, code)
		}
	}
	if diff := cmp.Diff([]string{"POST sent"}, b.server.effects()); diff != "" {
		t.Errorf("at the server (-want +got):\n%s", diff)
	}
	// What else goes on over the same connection is not touched.
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "sent") {
		t.Errorf("read %q, %v", line, err)
	}
}

func TestHangUntilReleased(t *testing.T) {
	for _, stage := range []string{"before", "after"} {
		t.Run(stage, func(t *testing.T) {
			b := newBench(t)
			hang, there := b.api.Hang, 0
			if stage == "after" {
				hang, there = b.api.HangAfter, 1
			}
			fault := hang(Match{Verb: "create"}, 1)
			answered := make(chan int, 1)
			go func() {
				code, _ := b.create(soon(t), "a")
				answered <- code
			}()
			if err := fault.AwaitHits(soon(t), 1); err != nil {
				t.Fatal(err)
			}
			if got := b.server.effects(); len(got) != there {
				t.Errorf("while it hangs, the server did %v", got)
			}
			// Its times are used up, others pass.
			if code, err := b.create(t.Context(), "b"); err != nil || code != http.StatusCreated {
				t.Errorf("another: %d, %v", code, err)
			}
			select {
			case code := <-answered:
				t.Errorf("answered %d before it was released", code)
			default:
			}
			fault.Release()
			if code := <-answered; code != http.StatusCreated {
				t.Errorf("answered %d", code)
			}
		})
	}
}

func TestClientThatGivesUpWhileItHangsIsNotServedLater(t *testing.T) {
	b := newBench(t)
	fault := b.api.Hang(Match{Verb: "create"}, Always)
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := b.create(ctx, "a")
		ended <- err
	}()
	if err := fault.AwaitHits(soon(t), 1); err != nil {
		t.Fatal(err)
	}
	giveUp()
	if err := <-ended; err == nil {
		t.Error("answered")
	}
	if _, err := b.api.Await(soon(t), func(q Request) bool { return !q.Finished.IsZero() }); err != nil {
		t.Fatal(err)
	}
	fault.Release()
	if code, err := b.create(t.Context(), "b"); err != nil || code != http.StatusCreated {
		t.Fatal(code, err)
	}
	if diff := cmp.Diff([]string{"POST b"}, b.server.effects()); diff != "" {
		t.Errorf("at the server (-want +got):\n%s", diff)
	}
}

func TestDelay(t *testing.T) {
	b := newBench(t)
	const d = 30 * time.Millisecond
	b.api.Delay(Match{Verb: "create"}, d, 1)
	b.api.DelayAfter(Match{Verb: "create"}, d, 1)
	if code, err := b.create(t.Context(), "a"); err != nil || code != http.StatusCreated {
		t.Fatal(code, err)
	}
	// Only the lower bound can be relied on.
	if logged := b.api.Requests()[0]; logged.Finished.Sub(logged.Arrived) < 2*d || len(logged.Faults) != 2 {
		t.Errorf("logged %+v", logged)
	}
	late := b.api.Delay(Match{Verb: "create"}, time.Hour, 1)
	done := make(chan int, 1)
	go func() {
		code, _ := b.create(soon(t), "b")
		done <- code
	}()
	if err := late.AwaitHits(soon(t), 1); err != nil {
		t.Fatal(err)
	}
	b.api.ReleaseAll()
	if code := <-done; code != http.StatusCreated {
		t.Errorf("answered %d", code)
	}
}

func TestFaultsStrikeInTheirOrder(t *testing.T) {
	b := newBench(t)
	b.api.Delay(Match{}, time.Millisecond, Always)
	first := b.api.Fail(Match{}, NotAllowed, 1)
	second := b.api.Fail(Match{}, Broken, 1)
	for _, want := range []int{403, 500, 201} {
		if code, err := b.create(t.Context(), "a"); err != nil || code != want {
			t.Errorf("answered %d, %v, want %d", code, err, want)
		}
	}
	if first.Hits() != 1 || second.Hits() != 1 {
		t.Errorf("hit %d and %d times", first.Hits(), second.Hits())
	}
}

// A server does not undo what it has begun because somebody hung up, so a death while it works must not prevent a write.
func TestWriteThatWasSentIsDoneThoughItsClientIsGone(t *testing.T) {
	b := newBench(t)
	b.server.slow = make(chan struct{})
	ctx, die := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := b.create(ctx, "a")
		ended <- err
	}()
	<-b.server.slow
	die()
	if err := <-ended; err == nil {
		t.Error("answered")
	}
	b.api.CutConnections()
	// Time for a cancellation to get through, if there were one.
	time.Sleep(20 * time.Millisecond)
	select {
	case <-b.server.slow:
	case <-soon(t).Done():
		t.Fatal("the server gave up")
	}
	logged, err := b.api.Await(soon(t), func(q Request) bool { return !q.Finished.IsZero() })
	if err != nil || logged.Answer != http.StatusCreated {
		t.Errorf("logged %+v, %v", logged, err)
	}
	if diff := cmp.Diff([]string{"POST a"}, b.server.effects()); diff != "" {
		t.Errorf("at the server (-want +got):\n%s", diff)
	}
}
