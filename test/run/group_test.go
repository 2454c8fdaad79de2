// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"testing"
	"time"
)

// TestNothingOutlivesAnInterrupt would catch a run that ends go test and leaves the control plane that its tests started. The
// shell lets its background job ignore interrupts, so this is the stubborn kind.
func TestNothingOutlivesAnInterrupt(t *testing.T) {
	alive, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := inGroup(ctx, "sh", "-c", "sleep 300 & echo started >&3; wait")
	cmd.ExtraFiles = []*os.File{held}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer endGroup(cmd)
	held.Close()
	if _, err := io.ReadFull(alive, make([]byte, len("started\n"))); err != nil {
		t.Fatalf("waiting for the job: %v", err)
	}
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("an interrupted command ended as if nothing had happened")
	}
	endGroup(cmd)
	// The pipe ends when its last holder does.
	if err := alive.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := alive.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the job outlived the interrupt: %v", err)
	}
}
