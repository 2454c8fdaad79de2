// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	testclock "k8s.io/utils/clock/testing"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// heard collects log lines.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) context(ctx context.Context) context.Context {
	return klog.NewContext(ctx, funcr.New(func(_, args string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lines = append(h.lines, args)
	}, funcr.Options{}))
}

func (h *heard) count(part string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, line := range h.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

func TestMissingRightIsToldOnceAndAwaited(t *testing.T) {
	clk := testclock.NewFakeClock(time.Unix(0, 0))
	api := kit.NewAPI(clk, &kit.Log{})
	grantWatch := api.Deny("watch", "volumesnapshots")
	grantPatch := api.Deny("patch", "volumesnapshots/status")
	a := newAccess(api, clk, newHealth(), cure{"deploy/snapshotter/rbac.yaml", map[string]string{"volumesnapshots": "deploy/components/x"}})
	snapshots := Right{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots", Verbs: "list watch", Why: "binding"}
	a.require(
		snapshots,
		Right{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots/status", Verbs: "patch", Why: "telling users"},
		Right{Resource: "secrets", Verbs: "get", Namespace: "ns", Why: "secrets"})
	var log heard
	ctx, stop := context.WithCancel(log.context(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = a.run(ctx) })
	arrived := make(chan error, 1)
	running.Go(func() { arrived <- a.await(ctx, snapshots) })

	const first = "missing right: watch on volumesnapshots of snapshot.storage.k8s.io, needed for binding; add deploy/components/x to deploy/pair or deploy/node, or bind a role such as that in deploy/snapshotter/rbac.yaml to " + kit.Account
	const second = "missing right: patch on volumesnapshots/status of snapshot.storage.k8s.io, needed for telling users; bind a role such as that in deploy/snapshotter/rbac.yaml to " + kit.Account
	until(t, "both are told", func() bool { return log.count(first) == 1 && log.count(second) == 1 })
	if text, ready := a.health.report(); !ready || !strings.Contains(text, first) {
		t.Errorf("health says %v %s", ready, text)
	}
	asked := len(api.Requests())
	until(t, "the next look is awaited", func() bool { return clk.HasWaiters() })
	clk.Step(askAgain)
	until(t, "asked again for what is missing", func() bool { return len(api.Requests()) >= asked+2 })
	if log.count("missing right") != 2 || log.count("secrets") != 0 {
		t.Errorf("told again: %v", log.lines)
	}
	grantWatch()
	until(t, "the right is noticed", func() bool {
		if clk.HasWaiters() {
			clk.Step(askAgain)
		}
		return log.count("No longer so: "+first) == 1
	})
	if err := <-arrived; err != nil {
		t.Errorf("awaiting: %v", err)
	}
	grantPatch()
	stop()
	running.Wait()
}

func TestAwaitEndsWithTheContext(t *testing.T) {
	clk := testclock.NewFakeClock(time.Unix(0, 0))
	a := newAccess(kit.NewAPI(clk, &kit.Log{}), clk, newHealth(), cure{manifest: "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.await(ctx, Right{Resource: "pods", Verbs: "get"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// An API server that does not answer the question is no reason to wait for ever: the work finds out.
func TestUnansweredQuestionHindersNothing(t *testing.T) {
	clk := testclock.NewFakeClock(time.Unix(0, 0))
	api := kit.NewAPI(clk, &kit.Log{})
	api.Script(kit.Rule{Resource: "selfsubjectaccessreviews", Err: apierrors.NewInternalError(errors.New("down"))})
	a := newAccess(api, clk, newHealth(), cure{manifest: "x"})
	right := Right{Resource: "pods", Verbs: "get"}
	a.require(right)
	a.ask(t.Context(), true)
	if err := a.await(t.Context(), right); err != nil {
		t.Error(err)
	}
	a.report(klog.Background())
	if text, _ := a.health.report(); text != "" {
		t.Errorf("health says %s", text)
	}
}

// An API server that does not say who asks leaves the account without a name, and is not asked on and on.
func TestAccountWithoutAName(t *testing.T) {
	clk := testclock.NewFakeClock(time.Unix(0, 0))
	api := kit.NewAPI(clk, &kit.Log{})
	api.Deny("get", "pods")
	a := newAccess(api, clk, newHealth(), cure{manifest: "deploy/x/rbac.yaml"})
	a.learnAccount(t.Context())
	if a.account != "" {
		t.Errorf("asked while nothing is missing: %s", a.account)
	}
	api.Script(kit.Rule{Resource: "selfsubjectreviews", Err: apierrors.NewInternalError(errors.New("down"))})
	a.require(Right{Resource: "pods", Verbs: "get", Why: "owners"})
	a.ask(t.Context(), true)
	a.learnAccount(t.Context())
	asked := len(api.Requests())
	a.learnAccount(t.Context())
	if len(api.Requests()) != asked {
		t.Error("asked twice")
	}
	a.report(klog.Background())
	const want = "missing right: get on pods, needed for owners; bind a role such as that in deploy/x/rbac.yaml to the account of this process"
	if text, _ := a.health.report(); !strings.Contains(text, want) {
		t.Errorf("health says %s", text)
	}
}
