// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/csi-tandem/csi-tandem/examples/driver/loop"
	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
)

// Somebody on the machine frees the device while it is being published. The wrong implementation mounts it all the same and answers
// OK: the pod writes to whichever volume gets the device next.
func TestDeviceThatIsFreedWhileItIsPublished(t *testing.T) {
	dir := t.TempDir()
	if err := loop.Probe(); err != nil || mount.Probe(dir) != mount.Bind {
		t.Skip("this process may not mount, or there are no loop devices: ", err)
	}
	data, s := filepath.Join(dir, "data"), &Server{options: Options{Mount: mount.Bind, Devices: true}}
	if err := os.WriteFile(data, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	device, err := loop.Attach(data, loop.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := loop.Detach(data, loop.ReadWrite); err != nil {
		t.Fatal(err)
	}
	if loop.Verify(device, data, loop.ReadWrite) == nil {
		t.Skipf("somebody else has %s open", device)
	}
	target := filepath.Join(dir, "target")
	if err := s.attachDevice(device, mount.Target{Source: data, Path: target}); err == nil {
		t.Error("a device that shows something else was published")
		_ = mount.Detach(target, []string{device})
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("the path is still there")
	}
}
