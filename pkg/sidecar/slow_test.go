// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// sluggish answers one question for a right at once, and the others when it is told to.
type sluggish struct {
	kube.Client
	answer chan struct{}
}

func (s *sluggish) Create(ctx context.Context, r kube.Resource, obj, into kube.Object) error {
	if review, ok := obj.(*authorizationv1.SelfSubjectAccessReview); ok && review.Spec.ResourceAttributes.Resource != "r0" {
		select {
		case <-s.answer:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Client.Create(ctx, r, obj, into)
}

// TestSlowQuestionsHoldUpNothing: the API server takes its time for some questions. Catches a cache that does not begin before all are answered.
func TestSlowQuestionsHoldUpNothing(t *testing.T) {
	slow := &sluggish{kit.NewAPI(clock.RealClock{}, &kit.Log{}), make(chan struct{})}
	a := newAccess(slow, clock.RealClock{}, newHealth(), cure{manifest: "x"})
	for i := range 3 {
		a.require(Right{Resource: fmt.Sprint("r", i), Verbs: "get list", Why: "work"})
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { _ = a.run(ctx) })
	if err := a.await(ctx, Right{Resource: "r0", Verbs: "get list", Why: "a cache"}); err != nil {
		t.Error(err)
	}
	close(slow.answer)
	if err := a.await(ctx, Right{Resource: "r2", Verbs: "get list", Why: "another"}); err != nil {
		t.Error(err)
	}
	stop()
	running.Wait()
}

// TestHurried: catches a handler that writes for ever to somebody who does not read.
func TestHurried(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewServer(hurried(100*time.Millisecond, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})))
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("it still writes")
	}
	_ = conn.Close()
	server.Close()
}
