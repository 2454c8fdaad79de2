// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
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
