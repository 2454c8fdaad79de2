// SPDX-License-Identifier: Apache-2.0

// Package proxy stands between the sidecars and the two servers that they speak to, so that tests can choose what goes
// wrong, and when: API is a TLS proxy before a real API server, Driver a gRPC proxy before the socket of a real driver.
//
// It owns faults by rule (refused, lost, late, hanging, stale), the log of what was asked, and the one Counter that
// numbers the effects seen by several proxies, so that a process can be ended around exactly the n-th of them, before
// it is sent or after it took effect and before its answer is seen.
//
// It must not know what the sidecars decide, nor what the objects and calls mean: it reads from a request only who
// asks for what, and passes the bytes on as they are.
//
// It stands outside the walks, between the processes that a stage starts and the servers that answer them. Whatever is
// not hit by a rule or a cut passes as if nothing stood there.
package proxy

import (
	"context"
	"errors"
	"sync"
)

var (
	// errClientGone ends what is being done for somebody who has hung up.
	errClientGone = errors.New("the client is gone")
	// errSwallowed says that a cut took the request or its answer, and that the client is to hear nothing.
	errSwallowed = errors.New("a cut swallowed it")
)

// flight counts what is being served, so that closing can wait for it.
type flight struct {
	mu     sync.Mutex
	closed bool
	wait   sync.WaitGroup
}

// enter is false once closing has begun.
func (f *flight) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.wait.Add(1)
	return true
}

func (f *flight) leave() { f.wait.Done() }

func (f *flight) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
}

// silence is what remains of a server that never answers: it ends when the client has given up.
func silence(ctx context.Context) error {
	<-ctx.Done()
	return errClientGone
}
