// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
)

// others mounts something that is none of the driver's, with a file in it.
func (r *rig) others(t *testing.T, path string) {
	t.Helper()
	must(t, os.MkdirAll(path, 0o755))
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, ""); err != nil {
		t.Skip("this process may not mount: ", err)
	}
	mountless(t, r)
	must(t, os.WriteFile(filepath.Join(path, "precious"), nil, 0o600))
}

func stays(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

func (r *rig) delete(t *testing.T, id string) {
	t.Helper()
	_, err := r.DeleteVolume(r.ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	must(t, err)
}

// Catches an undoing that takes whatever is mounted at the path of a use for the volume's: of a block volume the staging is on record only.
func TestStagingABlockVolumeMountsAndUnmountsNothing(t *testing.T) {
	modes(t, func(t *testing.T, r *rig, _ mount.Mode) {
		staging := filepath.Join(r.dir, "staging")
		r.others(t, staging)
		id := r.blockVolume(t, "v", mib).GetVolumeId()
		for range 2 {
			_, err := r.NodeStageVolume(r.ctx, &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging, VolumeCapability: shared})
			must(t, err)
		}
		must(t, errors.Join(r.unstageAt(id, staging), r.unstageAt(id, staging)))
		stays(t, filepath.Join(staging, "precious"))
		r.delete(t, id)
	})
}

// Catches a driver that takes a path for its own because it is on record, and one that unmounts until nothing is mounted.
func TestMountsOfOthersAtAPathOfOurs(t *testing.T) {
	modes(t, func(t *testing.T, r *rig, mode mount.Mode) {
		id := r.volume(t, ask("v", mib)).GetVolumeId()
		late := filepath.Join(r.dir, "late", "staging")
		if mode == mount.Bind {
			wantCode(t, r.stageAt(id, late), codes.InvalidArgument)
		}
		r.others(t, late)
		if mode == mount.Bind {
			wantCode(t, r.stageAt(id, late), codes.Internal)
		}
		must(t, r.unstageAt(id, late))
		stays(t, filepath.Join(late, "precious"))

		staging, target := r.publish(t, id, filesystem, false)
		taken := filepath.Join(r.dir, "taken")
		r.others(t, taken)
		wantCode(t, r.publishAt(id, staging, taken), codes.Internal)
		must(t, r.unpublishAt(id, taken))
		stays(t, filepath.Join(taken, "precious"))
		if mode == mount.Bind {
			r.others(t, target)
			wantCode(t, r.unpublishAt(id, target), codes.Internal)
			stays(t, filepath.Join(target, "precious"))
			must(t, unix.Unmount(target, 0))
		}
		r.unpublish(t, id, staging, target)
		r.delete(t, id)
	})
}

// Catches a driver that knows a volume by the end of a path: any folder of that name is unmounted and removed, for an id that was
// never a volume's.
func TestWhatOnlyLooksLikeAVolume(t *testing.T) {
	r := in(t, mount.Bind)
	gone := r.volume(t, ask("gone", mib)).GetVolumeId()
	r.delete(t, gone)
	foreign := filepath.Join(r.dir, "foreign")
	for _, name := range []string{"data", "loopback", gone + "/data", "volumes/" + gone + "/data", "loop0"} {
		source, path, link := filepath.Join(foreign, name), filepath.Join(r.dir, "path"), filepath.Join(r.dir, "link")
		must(t, errors.Join(os.MkdirAll(source, 0o755), os.MkdirAll(path, 0o755), os.Symlink(source, link)))
		must(t, unix.Mount(source, path, "", unix.MS_BIND, ""))
		before := r.mounts(t)
		for _, id := range []string{"..", ".", "/", "x/..", "never-seen", gone, strings.ToUpper(gone)} {
			must(t, errors.Join(r.unpublishAt(id, path), r.unstageAt(id, path), r.unpublishAt(id, link), r.unstageAt(id, link)))
			stays(t, link)
			if after := r.mounts(t); !slices.Equal(before, after) {
				t.Fatalf("%s, %q: mounted is %v, before it was %v", id, name, after, before)
			}
		}
		must(t, errors.Join(unix.Unmount(path, 0), os.Remove(link)))
	}
}

// Catches a driver for which every loop device is its own: the pod of another driver on the machine loses its device.
func TestDeviceOfAnotherDriver(t *testing.T) {
	r, other := withDevices(t), withDevices(t)
	id := other.blockVolume(t, "v", mib).GetVolumeId()
	staging, target := other.publish(t, id, shared, false)
	gone := r.blockVolume(t, "gone", mib).GetVolumeId()
	r.delete(t, gone)
	for _, unknown := range []string{id, gone, "vol-nosuch"} {
		must(t, errors.Join(r.unpublishAt(unknown, target), r.unstageAt(unknown, target)))
	}
	if left := other.mounts(t); !slices.Equal(left, []string{target}) {
		t.Errorf("mounted: %v", left)
	}
	other.unpublish(t, id, staging, target)
}

// Catches a driver that takes whatever is no folder with content for nothing: the undoing removes a socket of others; and one that
// opens a pipe, and waits in it with all calls about the volume.
func TestPathThatIsNeitherFolderNorFile(t *testing.T) {
	modes(t, func(t *testing.T, r *rig, _ mount.Mode) {
		socket, pipe, device, empty := filepath.Join(r.dir, "socket"), filepath.Join(r.dir, "pipe"), filepath.Join(r.dir, "null"), filepath.Join(r.dir, "empty")
		l, err := net.Listen("unix", socket)
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		must(t, errors.Join(unix.Mkfifo(pipe, 0o600), os.WriteFile(empty, nil, 0o600)))
		paths := []string{socket, pipe, empty}
		if err := unix.Mknod(device, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err == nil {
			paths = append(paths, device)
		}
		files, block := r.volume(t, ask("files", mib)).GetVolumeId(), r.blockVolume(t, "block", mib).GetVolumeId()
		staging, target := r.publish(t, files, filesystem, false)
		blockStaging, blockTarget := r.publish(t, block, shared, false)
		ctx, cancel := context.WithTimeout(r.ctx, 5*time.Second)
		defer cancel()
		for _, path := range paths {
			wantCode(t, r.publishAt(files, staging, path), codes.InvalidArgument)
			if path != empty {
				_, err := r.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
					VolumeId: block, StagingTargetPath: blockStaging, TargetPath: path, VolumeCapability: shared,
				})
				wantCode(t, err, codes.InvalidArgument)
			}
			must(t, errors.Join(r.unpublishAt(files, path), r.unpublishAt(block, path)))
			stays(t, path)
		}
		r.unpublish(t, files, staging, target)
		r.unpublish(t, block, blockStaging, blockTarget)
	})
}

// Catches a driver that tells paths apart by their spelling: the undoing of the one takes the other away, which stays on record.
func TestOnePathByTwoNames(t *testing.T) {
	modes(t, func(t *testing.T, r *rig, _ mount.Mode) {
		id := r.volume(t, ask("v", mib)).GetVolumeId()
		staging, target := r.publish(t, id, filesystem, false)
		must(t, os.Symlink(r.dir, filepath.Join(r.dir, "alias")))
		alias := func(path string) string { return filepath.Join(r.dir, "alias", filepath.Base(path)) }
		must(t, errors.Join(r.stageAt(id, alias(staging)), r.publishAt(id, alias(staging), alias(target))))
		_, err := r.NodeGetVolumeStats(r.ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: alias(target)})
		must(t, err)
		r.unpublish(t, id, alias(staging), alias(target))
		r.delete(t, id)
	})
}

// Catches a driver that lets its own state be covered, and then can neither read nor change it.
func TestPathOfTheState(t *testing.T) {
	modes(t, func(t *testing.T, r *rig, _ mount.Mode) {
		id := r.volume(t, ask("v", mib)).GetVolumeId()
		for _, path := range []string{"/", r.dir, filepath.Join(r.dir, "state"), filepath.Join(r.dir, "state", "volumes", id, "data")} {
			wantCode(t, r.stageAt(id, path), codes.InvalidArgument)
			must(t, r.unstageAt(id, path))
		}
		r.delete(t, id)
	})
}
