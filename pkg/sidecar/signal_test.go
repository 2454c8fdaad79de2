// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFirstSignalEndsInOrder(t *testing.T) {
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGTERM
	signals <- syscall.SIGTERM // the same one, sent to the group as well
	last := errors.New("the result of the work")
	err := obey(t.Context(), signals, func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(sameSignal / 4) // work in hand
		return last
	})
	if !errors.Is(err, last) {
		t.Errorf("ended with %v", err)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	signals, told, over := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	defer func() { over <- struct{}{} }()
	go func() {
		signals <- syscall.SIGTERM
		<-told
		time.Sleep(sameSignal + sameSignal/4)
		signals <- os.Interrupt
	}()
	err := obey(t.Context(), signals, func(ctx context.Context) error {
		<-ctx.Done()
		close(told)
		<-over // a call that never answers
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "second signal (interrupt)") {
		t.Errorf("ended with %v", err)
	}
}
