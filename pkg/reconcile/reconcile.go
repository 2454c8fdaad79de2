// SPDX-License-Identifier: Apache-2.0

// Package reconcile owns the loop between an event and a room: keys wait in a queue, each is worked on
// by one worker at a time, and what the room returns says when it is tried again.
//
// It must not know storage, nor what a key stands for.
//
// It stands at both ends of every walk: it hands keys to gather, and takes the result of act.
package reconcile

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Key names what is to be looked at. UID is set where namesakes must be told apart.
type Key struct {
	Namespace string
	Name      string
	UID       types.UID
}

// String is the key as it appears in logs.
func (k Key) String() string {
	text := k.Name
	if k.Namespace != "" {
		text = k.Namespace + "/" + text
	}
	if k.UID != "" {
		text += "@" + string(k.UID)
	}
	return text
}

// Result says what a room wants after a key was handled without error. The zero value means: nothing,
// until something changes.
type Result struct {
	// After asks for another look after this time, without counting as a failure.
	After time.Duration
	// Why is what the key waits for, for whoever looks at the queue. With it a key without After waits for a change.
	Why string
}

// Func handles one key. Its error is logged once by the queue and tried again with growing delays;
// fault.Terminal and fault.RetryAfter change that, and one marked fault.Waiting is no error for the log.
type Func func(ctx context.Context, key Key) (Result, error)
