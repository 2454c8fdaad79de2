// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
)

// busily does a pod's work over and over until the test ends.
func busily(t *testing.T, work func(i int)) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-stopped })
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				work(i)
				// Without a pause it holds the folder's lock in the kernel nearly all the time.
				time.Sleep(20 * time.Microsecond)
			}
		}
	}()
}

// exchange puts each of the two in the other's place, in one step.
func exchange(t *testing.T, a, b string) error {
	t.Helper()
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// copied takes a snapshot and a clone, hands over the content of each, and removes them, as there is room for a few only.
func (r *rig) copied(t *testing.T, id string, check func(data string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, 5*time.Second)
	defer cancel()
	snap, err := r.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "copy", SourceVolumeId: id})
	must(t, err)
	check(filepath.Join(r.dir, "state", "snapshots", snap.GetSnapshot().GetSnapshotId(), "data"))
	_, err = r.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: snap.GetSnapshot().GetSnapshotId()})
	must(t, err)
	req := ask("clone", mib)
	req.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id}}}
	clone, err := r.CreateVolume(ctx, req)
	must(t, err)
	check(filepath.Join(r.dir, "state", "volumes", clone.GetVolume().GetVolumeId(), "data"))
	_, err = r.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: clone.GetVolume().GetVolumeId()})
	must(t, err)
}

// Files come and go in a volume that is in use. The wrong implementation fails as soon as one that it has listed is gone.
func TestCopiesOfABusyVolume(t *testing.T) {
	r := start(t, plain)
	id := r.volume(t, ask("v", mib)).GetVolumeId()
	_, target := r.publish(t, id, filesystem, false)
	for i := range 100 {
		must(t, os.WriteFile(filepath.Join(target, fmt.Sprint("keep", i)), []byte("x"), 0o644))
	}
	busily(t, func(i int) {
		_ = os.WriteFile(filepath.Join(target, fmt.Sprint("tmp", i%50)), []byte("x"), 0o644)
		_ = os.Remove(filepath.Join(target, fmt.Sprint("tmp", (i+25)%50)))
		_ = os.MkdirAll(filepath.Join(target, fmt.Sprint("d", i%20), "e"), 0o755)
		_ = os.RemoveAll(filepath.Join(target, fmt.Sprint("d", (i+10)%20)))
	})
	for range 6 {
		r.copied(t, id, func(data string) {
			kept, err := filepath.Glob(filepath.Join(data, "keep*"))
			must(t, err)
			if len(kept) != 100 {
				t.Fatalf("%d of the files that were there all the time are in the copy, want 100", len(kept))
			}
		})
		stats, err := r.NodeGetVolumeStats(r.ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: target})
		must(t, err)
		if used := stats.GetUsage()[0].GetUsed(); used < 100 || used > 150 {
			t.Fatalf("%d bytes are used", used)
		}
	}
}

// A pod can put a link where a moment ago there was a folder or a file. The wrong implementation looks first and then opens
// by name, and copies what only the node's root may read into the pod's own snapshot.
func TestCopiesHaveNothingFromOutside(t *testing.T) {
	r := start(t, plain)
	const secret = "root's"
	outside := filepath.Join(r.dir, "outside")
	must(t, os.Mkdir(outside, 0o700))
	must(t, os.WriteFile(filepath.Join(outside, "file"), []byte(secret), 0o600))
	id := r.volume(t, ask("v", mib)).GetVolumeId()
	_, target := r.publish(t, id, filesystem, false)
	at := func(name string) string { return filepath.Join(target, name) }
	must(t, os.Mkdir(at("folder"), 0o755))
	must(t, os.Symlink(outside, at("folder-link")))
	must(t, os.WriteFile(at("file"), []byte("own"), 0o644))
	must(t, os.Symlink(filepath.Join(outside, "file"), at("file-link")))
	if err := exchange(t, at("file"), at("file-link")); err != nil {
		t.Skip("no exchange on this file system: ", err)
	}
	busily(t, func(int) {
		_ = exchange(t, at("folder"), at("folder-link"))
		_ = exchange(t, at("file"), at("file-link"))
	})
	for range 25 {
		r.copied(t, id, func(data string) {
			// Links may be in the copy; what they lead to may not.
			must(t, filepath.WalkDir(data, func(path string, entry os.DirEntry, err error) error {
				if err != nil || !entry.Type().IsRegular() {
					return err
				}
				if content, err := os.ReadFile(path); err != nil || strings.Contains(string(content), secret) {
					t.Fatalf("%s is %q (%v)", path, content, err)
				}
				return nil
			}))
		})
	}
}

// A pod can put a pipe where a moment ago there was a folder or a file. The wrong implementation waits for ever for somebody
// to write to it, and the volume can never be deleted.
func TestCopiesDoNotWaitForAPipe(t *testing.T) {
	r := start(t, plain)
	id := r.volume(t, ask("v", mib)).GetVolumeId()
	_, target := r.publish(t, id, filesystem, false)
	const pairs = 20
	at := func(kind string, i int) string { return filepath.Join(target, fmt.Sprint(kind, i%pairs)) }
	for i := range pairs {
		must(t, os.WriteFile(at("file", i), []byte("x"), 0o644))
		must(t, os.Mkdir(at("folder", i), 0o755))
		must(t, unix.Mkfifo(at("file-pipe", i), 0o644))
		must(t, unix.Mkfifo(at("folder-pipe", i), 0o644))
	}
	if err := exchange(t, at("file", 0), at("file-pipe", 0)); err != nil {
		t.Skip("no exchange on this file system: ", err)
	}
	// Who waits would keep the driver from ending: the last cleanup to be registered is the first to run.
	t.Cleanup(func() {
		for i := range pairs {
			for _, kind := range []string{"file", "folder", "file-pipe", "folder-pipe"} {
				if fd, err := unix.Open(at(kind, i), unix.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
					t.Cleanup(func() { _ = unix.Close(fd) })
				}
			}
		}
	})
	busily(t, func(i int) {
		_ = exchange(t, at("file", i), at("file-pipe", i))
		_ = exchange(t, at("folder", i), at("folder-pipe", i))
	})
	for range 10 {
		r.copied(t, id, func(string) {})
		ctx, cancel := context.WithTimeout(r.ctx, 5*time.Second)
		_, err := r.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: target})
		cancel()
		must(t, err)
	}
}
