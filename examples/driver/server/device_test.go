// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-tandem/csi-tandem/examples/driver/loop"
	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
	"github.com/csi-tandem/csi-tandem/examples/driver/server"
)

var shared = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
}

// withDevices is a driver whose block volumes are devices, where there are any.
func withDevices(t *testing.T) *rig {
	t.Helper()
	if err := loop.Probe(); err != nil || mount.Probe(t.TempDir()) != mount.Bind {
		t.Skip("this process may not mount, or there are no loop devices: ", err)
	}
	r := start(t, func(o *server.Options) { o.Mount, o.Devices = mount.Bind, true })
	mountless(t, r)
	return r
}

func (r *rig) blockVolume(t *testing.T, name string, size int64) *csi.Volume {
	t.Helper()
	req := ask(name, size)
	req.VolumeCapabilities = []*csi.VolumeCapability{shared}
	return r.volume(t, req)
}

// One pod of a volume ends while the next one begins. In the wrong implementation the end of the one finds no other use of
// the device, and frees it after the beginning of the other has found it there: that pod writes to whichever volume gets
// the device next.
func TestDeviceStaysWithWhoComesAsAnotherLeaves(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		t.Run(fmt.Sprint("read-only ", readOnly), func(t *testing.T) {
			r := withDevices(t)
			// Other volumes make the search for a device longer.
			for k := range 12 {
				id := r.blockVolume(t, fmt.Sprint("other", k), mib).GetVolumeId()
				staging, target := r.publish(t, id, shared, false)
				defer r.unpublish(t, id, staging, target)
			}
			id := r.blockVolume(t, "v", mib).GetVolumeId()
			staging, here := r.publish(t, id, shared, readOnly)
			there := here + "-too"
			for range 40 {
				var publishing, unpublishing error
				var both sync.WaitGroup
				both.Go(func() {
					time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
					_, publishing = r.NodePublishVolume(r.ctx, &csi.NodePublishVolumeRequest{
						VolumeId: id, StagingTargetPath: staging, TargetPath: there, VolumeCapability: shared, Readonly: readOnly,
					})
				})
				both.Go(func() { unpublishing = r.unpublishAt(id, here) })
				both.Wait()
				must(t, errors.Join(publishing, unpublishing))
				file, err := os.Open(there)
				must(t, err)
				_, err = file.ReadAt(make([]byte, 8), 0)
				must(t, errors.Join(err, file.Close()))
				here, there = there, here
			}
			r.unpublish(t, id, staging, here)
		})
	}
}

// The kernel leaves the end of a file out of its device if that is no whole sector.
func TestDeviceIsNotSmallerThanTheVolume(t *testing.T) {
	r := withDevices(t)
	for _, size := range []int64{1, 100, 1000_000, 4097} {
		v := r.blockVolume(t, fmt.Sprint("v", size), size)
		staging, target := r.publish(t, v.GetVolumeId(), shared, false)
		file, err := os.Open(target)
		must(t, err)
		end, err := file.Seek(0, io.SeekEnd)
		must(t, errors.Join(err, file.Close()))
		if end < size || end != v.GetCapacityBytes() {
			t.Errorf("%d bytes were asked for: the volume has %d, the device %d", size, v.GetCapacityBytes(), end)
		}
		r.unpublish(t, v.GetVolumeId(), staging, target)
	}
	left, err := filepath.Glob(filepath.Join(r.dir, "target-*"))
	must(t, err)
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// devices lists those that show a file of the volume, also one that is gone.
func devices(t *testing.T, id string) []string {
	t.Helper()
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	must(t, err)
	return slices.DeleteFunc(files, func(file string) bool {
		content, err := os.ReadFile(file)
		return err != nil || !strings.Contains(string(content), id)
	})
}

// Catches a driver that frees only the devices of volumes which it knows: a volume that is gone keeps its device and its blocks for ever;
// and one that frees a device which another pod has.
func TestDeviceOfAForgottenVolume(t *testing.T) {
	r := withDevices(t)
	id := r.blockVolume(t, "v", mib).GetVolumeId()
	staging, target := r.publish(t, id, shared, false)
	second := target + "-2"
	_, err := r.NodePublishVolume(r.ctx, &csi.NodePublishVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, TargetPath: second, VolumeCapability: shared,
	})
	must(t, errors.Join(err, r.control.Forget(r.ctx, id), r.unpublishAt(id, second)))
	if found := devices(t, id); len(found) != 1 {
		t.Errorf("devices: %v", found)
	}
	r.unpublish(t, id, staging, target)
	if found := devices(t, id); len(found) > 0 {
		t.Errorf("left: %v", found)
	}
}

// Catches a driver that frees devices only if it would publish by devices now.
func TestDeviceFromBeforeAnotherStart(t *testing.T) {
	var o server.Options
	first := start(t, func(options *server.Options) { options.Mount, options.Devices = mount.Bind, true; o = *options })
	mountless(t, first)
	if err := loop.Probe(); err != nil || mount.Probe(t.TempDir()) != mount.Bind {
		t.Skip("this process may not mount, or there are no loop devices: ", err)
	}
	id := first.blockVolume(t, "v", mib).GetVolumeId()
	staging, target := first.publish(t, id, shared, false)
	second := start(t, func(options *server.Options) {
		options.Backend, options.Mount = o.Backend, mount.Link
	})
	second.unpublish(t, id, staging, target)
	if found := devices(t, id); len(found) > 0 {
		t.Errorf("left: %v", found)
	}
	second.delete(t, id)
}

// Catches an undoing that looks for what the device showed when it was published: the path would stay for ever.
func TestUndoingAfterOthersHaveFreedTheDevice(t *testing.T) {
	r := withDevices(t)
	id := r.blockVolume(t, "v", mib).GetVolumeId()
	staging, target := r.publish(t, id, shared, false)
	must(t, loop.Detach(filepath.Join(r.dir, "state", "volumes", id, "data"), loop.ReadWrite))
	r.unpublish(t, id, staging, target)
	r.delete(t, id)
}
