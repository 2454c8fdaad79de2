// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
)

// mounts lists what is mounted below the folder of the test.
func (r *rig) mounts(t *testing.T) []string {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	var found []string
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], r.dir+"/") {
			found = append(found, fields[4])
		}
	}
	return found
}

// mountless takes away what a failed test has left, so that its folder can be removed.
func mountless(t *testing.T, r *rig) {
	t.Helper()
	t.Cleanup(func() {
		for _, path := range slices.Backward(r.mounts(t)) {
			_ = unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
		}
	})
}

func (r *rig) stageAt(id, path string) error {
	_, err := r.NodeStageVolume(r.ctx, &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: path, VolumeCapability: filesystem})
	return err
}

func (r *rig) unstageAt(id, path string) error {
	_, err := r.NodeUnstageVolume(r.ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: path})
	return err
}

func (r *rig) publishAt(id, staging, path string) error {
	_, err := r.NodePublishVolume(r.ctx, &csi.NodePublishVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, TargetPath: path, VolumeCapability: filesystem,
	})
	return err
}

func (r *rig) unpublishAt(id, path string) error {
	_, err := r.NodeUnpublishVolume(r.ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: path})
	return err
}

// The wrong implementation takes away what is at the path, whoever's it is: the pod of volume a loses it in the middle of its
// work, and writes to the node's disk from then on.
func TestUndoingWhereAnotherVolumeIs(t *testing.T) {
	modes(t, func(t *testing.T, r *rig, _ mount.Mode) {
		a, b := r.volume(t, ask("a", mib)).GetVolumeId(), r.volume(t, ask("b", mib)).GetVolumeId()
		staging, target := r.publish(t, a, filesystem, false)
		must(t, os.WriteFile(filepath.Join(target, "file"), []byte("a's"), 0o644))
		before := r.mounts(t)
		other := filepath.Join(r.dir, "other")
		must(t, os.Mkdir(other, 0o755))
		must(t, r.stageAt(b, other))
		wantCode(t, r.stageAt(b, staging), codes.FailedPrecondition)
		wantCode(t, r.publishAt(b, other, target), codes.FailedPrecondition)
		// The same place under another name.
		must(t, os.Symlink(r.dir, filepath.Join(r.dir, "alias")))
		alias := filepath.Join(r.dir, "alias", filepath.Base(target))
		wantCode(t, r.publishAt(b, other, alias), codes.FailedPrecondition)
		must(t, r.unpublishAt(b, alias))
		// An id may be spelled so that it leads to the data of the other.
		for _, id := range []string{b, "never-seen", "../volumes/" + a, b + "/../" + a} {
			must(t, r.unpublishAt(id, target))
			must(t, r.unstageAt(id, staging))
			must(t, r.unpublishAt(id, alias))
		}
		must(t, r.unstageAt(b, other))
		if after := r.mounts(t); !slices.Equal(before, after) {
			t.Errorf("mounted is %v, before it was %v", after, before)
		}
		if content, err := os.ReadFile(filepath.Join(target, "file")); err != nil || string(content) != "a's" {
			t.Errorf("the pod reads %q, %v", content, err)
		}
		_, err := r.DeleteVolume(r.ctx, &csi.DeleteVolumeRequest{VolumeId: b})
		must(t, err)
		r.unpublish(t, a, staging, target)
	})
}

// What was never the volume's stays, also for a volume that nobody knows.
func TestUndoingWhereNoVolumeIs(t *testing.T) {
	modes(t, func(t *testing.T, r *rig, mode mount.Mode) {
		known := r.volume(t, ask("v", mib)).GetVolumeId()
		folder, link := filepath.Join(r.dir, "folder"), filepath.Join(r.dir, "link")
		must(t, os.Mkdir(folder, 0o755))
		must(t, os.Symlink("/etc", link))
		if mode == mount.Bind {
			must(t, unix.Mount("tmpfs", folder, "tmpfs", 0, ""))
		}
		before := r.mounts(t)
		for _, id := range []string{known, "never-seen"} {
			for _, path := range []string{folder, link} {
				must(t, r.unpublishAt(id, path))
				must(t, r.unstageAt(id, path))
				if _, err := os.Lstat(path); err != nil {
					t.Error(err)
				}
			}
		}
		if after := r.mounts(t); !slices.Equal(before, after) {
			t.Errorf("mounted is %v, before it was %v", after, before)
		}
	})
}

// A volume that is gone from the storage is still known by where its data were.
func TestUndoingForAForgottenVolume(t *testing.T) {
	modes(t, func(t *testing.T, r *rig, _ mount.Mode) {
		id := r.volume(t, ask("v", mib)).GetVolumeId()
		staging, target := r.publish(t, id, filesystem, false)
		must(t, r.control.Forget(r.ctx, id))
		r.unpublish(t, id, staging, target)
		if left := r.mounts(t); len(left) > 0 {
			t.Errorf("still mounted: %v", left)
		}
	})
}

// The kernel follows a link when it mounts, and its table then has another path. The wrong implementation finds nothing at
// the path that it was told, mounts again on every repeat, and never unmounts.
func TestLinkInPlaceOfAPath(t *testing.T) {
	r := in(t, mount.Bind)
	id := r.volume(t, ask("v", mib)).GetVolumeId()
	foreign, staging := filepath.Join(r.dir, "foreign"), filepath.Join(r.dir, "staging")
	must(t, errors.Join(os.Mkdir(foreign, 0o755), os.Mkdir(staging, 0o755)))
	link := filepath.Join(r.dir, "link")
	must(t, os.Symlink(foreign, link))
	wantCode(t, r.stageAt(id, link), codes.InvalidArgument)
	must(t, r.stageAt(id, staging))
	for range 2 {
		wantCode(t, r.publishAt(id, staging, link), codes.InvalidArgument)
	}
	must(t, r.unpublishAt(id, link))
	must(t, r.unstageAt(id, link))
	must(t, r.unstageAt(id, staging))
	if left := r.mounts(t); len(left) > 0 {
		t.Errorf("still mounted: %v", left)
	}
	if to, err := os.Readlink(link); err != nil || to != foreign {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	_, err := r.DeleteVolume(r.ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	must(t, err)
}

// The wrong implementation tells open calls apart by how their paths are spelled, and mounts once for each.
func TestSpellingsOfOnePath(t *testing.T) {
	r := in(t, mount.Bind)
	id := r.volume(t, ask("v", mib)).GetVolumeId()
	staging := filepath.Join(r.dir, "staging")
	must(t, os.Mkdir(staging, 0o755))
	for range 40 {
		var calls sync.WaitGroup
		for _, end := range []string{"", "/", "//", "/.", "/./", "///", "/.//", "/x/.."} {
			// One of them succeeds; the others may find it at work.
			calls.Go(func() { _ = r.stageAt(id, staging+end) })
		}
		calls.Wait()
		if found := r.mounts(t); len(found) != 1 {
			t.Fatalf("mounted: %v", found)
		}
		must(t, r.unstageAt(id, staging))
	}
}

// A link from before the driver could mount is its own, and gives way to the mount.
func TestLinkGivesWayToTheMount(t *testing.T) {
	r := in(t, mount.Bind)
	id := r.volume(t, ask("v", mib)).GetVolumeId()
	target := filepath.Join(r.dir, "target-"+id)
	must(t, os.Symlink(filepath.Join(r.dir, "state", "volumes", id, "data"), target))
	staging, target := r.publish(t, id, filesystem, false)
	if info, err := os.Lstat(target); err != nil || info.Mode().Type() != fs.ModeDir {
		t.Errorf("published as %v, %v", info, err)
	}
	r.unpublish(t, id, staging, target)
}

// The wrong implementation takes such a path, and refuses to give it up: undoing does not remove content, "." cannot be removed, and of a
// path below a file, or with too long a name, the kernel does not say that nothing is there.
func TestPathThatCouldNotBeGivenUp(t *testing.T) {
	modes(t, func(t *testing.T, r *rig, _ mount.Mode) {
		staging := filepath.Join(r.dir, "staging")
		must(t, os.Mkdir(staging, 0o755))
		file, folder := filepath.Join(r.dir, "file"), filepath.Join(r.dir, "folder")
		must(t, errors.Join(os.WriteFile(file, []byte("precious"), 0o600), os.Mkdir(folder, 0o755)))
		must(t, os.WriteFile(filepath.Join(folder, "file"), nil, 0o600))
		id := r.volume(t, ask("v", mib)).GetVolumeId()
		below, long, null := filepath.Join(file, "below"), filepath.Join(r.dir, strings.Repeat("x", 300)), filepath.Join(r.dir, "a\x00b")
		for _, path := range []string{"relative", below, long, null} {
			wantCode(t, r.stageAt(id, path), codes.InvalidArgument)
		}
		must(t, r.stageAt(id, staging))
		for _, path := range []string{file, folder, ".", "relative/path", below, long, null} {
			wantCode(t, r.publishAt(id, staging, path), codes.InvalidArgument)
			must(t, r.unpublishAt(id, path))
		}
		if content, err := os.ReadFile(file); err != nil || string(content) != "precious" {
			t.Errorf("the file has %q, %v", content, err)
		}
		must(t, r.unstageAt(id, staging))
		_, err := r.DeleteVolume(r.ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		must(t, err)
	})
}
