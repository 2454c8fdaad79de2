// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
)

// A turn that is not exclusive loses counts here; one that is never forgotten fills the memory with every volume there ever was.
func TestTurnsAreExclusiveAndForgotten(t *testing.T) {
	var ts turns
	counts := [2]int{}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			defer ts.take(fmt.Sprint("v", i%2))()
			count := counts[i%2]
			time.Sleep(100 * time.Microsecond)
			counts[i%2] = count + 1
		})
	}
	all.Wait()
	if counts != [2]int{20, 20} || len(ts.open) != 0 {
		t.Errorf("counted %v, remembered %d", counts, len(ts.open))
	}
}

// The wrong implementation lets two calls about one volume at different paths work at once, and the device that the one has
// found is freed by the other: it answers here although another call has the turn.
func TestNodeCallsWaitForTheirTurn(t *testing.T) {
	dir := t.TempDir()
	b, err := backend.Open(backend.Options{Dir: filepath.Join(dir, "state"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	s := &Server{options: Options{Backend: b, Mount: mount.Link, Features: AllFeatures()}}
	v, err := b.CreateVolume(backend.VolumeRequest{Name: "v", Required: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	filesystem := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
	}
	staging, target := filepath.Join(dir, "staging"), filepath.Join(dir, "target")
	for _, call := range []struct {
		name string
		make func(context.Context) error
	}{
		{"stage", func(ctx context.Context) error {
			_, err := s.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: v.ID, StagingTargetPath: staging, VolumeCapability: filesystem})
			return err
		}},
		{"publish", func(ctx context.Context) error {
			_, err := s.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
				VolumeId: v.ID, StagingTargetPath: staging, TargetPath: target, VolumeCapability: filesystem,
			})
			return err
		}},
		{"unpublish", func(ctx context.Context) error {
			_, err := s.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.ID, TargetPath: target})
			return err
		}},
		{"unstage", func(ctx context.Context) error {
			_, err := s.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.ID, StagingTargetPath: staging})
			return err
		}},
	} {
		t.Run(call.name, func(t *testing.T) {
			// Another volume's turn holds nobody.
			defer s.turns.take("another")()
			giveUp := s.turns.take(v.ID)
			answered := make(chan error, 1)
			go func() { answered <- call.make(t.Context()) }()
			select {
			case err := <-answered:
				t.Errorf("it did not wait (%v)", err)
				giveUp()
			case <-time.After(30 * time.Millisecond):
				giveUp()
				if err := <-answered; err != nil {
					t.Error(err)
				}
			}
		})
	}
}
