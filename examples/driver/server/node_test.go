// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
	"github.com/csi-tandem/csi-tandem/examples/driver/server"
)

// kubelet publishes a volume in the two steps of the node service.
func (r *rig) publish(t *testing.T, id string, c *csi.VolumeCapability, readOnly bool) (staging, target string) {
	t.Helper()
	staging, target = filepath.Join(r.dir, "staging-"+id), filepath.Join(r.dir, "target-"+id)
	must(t, os.MkdirAll(staging, 0o755))
	// Twice each: kubelet repeats what it is not sure of.
	for range 2 {
		_, err := r.NodeStageVolume(r.ctx, &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging, VolumeCapability: c})
		must(t, err)
	}
	for range 2 {
		_, err := r.NodePublishVolume(r.ctx, &csi.NodePublishVolumeRequest{
			VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: c, Readonly: readOnly,
		})
		must(t, err)
	}
	return staging, target
}

func (r *rig) unpublish(t *testing.T, id, staging, target string) {
	t.Helper()
	for range 2 {
		_, err := r.NodeUnpublishVolume(r.ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target})
		must(t, err)
	}
	for range 2 {
		_, err := r.NodeUnstageVolume(r.ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging})
		must(t, err)
	}
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target is still there: %v", err)
	}
	if _, err := os.Lstat(staging); err != nil {
		t.Errorf("the staging directory belongs to the caller and is gone: %v", err)
	}
}

// modes runs a test by links, and by mounts where they work.
func modes(t *testing.T, test func(t *testing.T, r *rig, mode mount.Mode)) {
	for _, mode := range []mount.Mode{mount.Link, mount.Bind} {
		t.Run(string(mode), func(t *testing.T) {
			test(t, in(t, mode), mode)
		})
	}
}

// in is a driver with this mode, where that can be.
func in(t *testing.T, mode mount.Mode) *rig {
	t.Helper()
	if mode == mount.Bind && mount.Probe(t.TempDir()) != mount.Bind {
		t.Skip("this process may not mount")
	}
	r := start(t, func(o *server.Options) { o.Mount = mode })
	mountless(t, r)
	return r
}

func TestWrittenIsReadAgain(t *testing.T) {
	modes(t, func(t *testing.T, r *rig, _ mount.Mode) {
		id := r.volume(t, ask("v", mib)).GetVolumeId()
		staging, target := r.publish(t, id, filesystem, false)
		must(t, os.WriteFile(filepath.Join(target, "file"), []byte("hello"), 0o644))
		_, err := r.DeleteVolume(r.ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		wantCode(t, err, codes.FailedPrecondition)
		stats, err := r.NodeGetVolumeStats(r.ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: target})
		must(t, err)
		if u := stats.GetUsage()[0]; u.GetTotal() != mib || u.GetUsed() != 5 || u.GetAvailable() != mib-5 {
			t.Errorf("usage %v", u)
		}
		r.unpublish(t, id, staging, target)
		staging, target = r.publish(t, id, filesystem, false)
		got, err := os.ReadFile(filepath.Join(target, "file"))
		must(t, err)
		if string(got) != "hello" {
			t.Errorf("read %q", got)
		}
		r.unpublish(t, id, staging, target)
		_, err = r.DeleteVolume(r.ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		must(t, err)
	})
}

func TestReadOnlyPublication(t *testing.T) {
	modes(t, func(t *testing.T, r *rig, mode mount.Mode) {
		if mode == mount.Link {
			t.Skip("a link cannot be read-only")
		}
		id := r.volume(t, ask("v", mib)).GetVolumeId()
		staging, target := r.publish(t, id, filesystem, true)
		if err := os.WriteFile(filepath.Join(target, "file"), nil, 0o644); err == nil {
			t.Error("a read-only volume was written to")
		}
		// Read-only is the publication, not the volume.
		must(t, os.WriteFile(filepath.Join(staging, "file"), nil, 0o644))
		r.unpublish(t, id, staging, target)
	})
}

func TestBlockPublication(t *testing.T) {
	block := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}, AccessMode: filesystem.GetAccessMode(),
	}
	modes(t, func(t *testing.T, r *rig, _ mount.Mode) {
		req := ask("v", mib)
		req.VolumeCapabilities = []*csi.VolumeCapability{block}
		id := r.volume(t, req).GetVolumeId()
		_, err := r.NodeStageVolume(r.ctx, &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: r.dir, VolumeCapability: filesystem})
		wantCode(t, err, codes.InvalidArgument)
		staging, target := r.publish(t, id, block, false)
		info, err := os.Stat(target)
		must(t, err)
		if !info.Mode().IsRegular() || info.Size() != mib {
			t.Errorf("published %v with %d bytes", info.Mode(), info.Size())
		}
		r.unpublish(t, id, staging, target)
	})
}

// A pod's block volume has to be a device: of a file a runtime makes none. Read-only has to hold at the device, and the last
// to unpublish has to free it, while another pod's goes on.
func TestBlockPublicationAsADevice(t *testing.T) {
	r := withDevices(t)
	block := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}, AccessMode: filesystem.GetAccessMode(),
	}
	req := ask("v", mib)
	req.VolumeCapabilities = []*csi.VolumeCapability{block}
	id := r.volume(t, req).GetVolumeId()
	staging, target := r.publish(t, id, block, false)
	reader := filepath.Join(r.dir, "reader")
	_, err := r.NodePublishVolume(r.ctx, &csi.NodePublishVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, TargetPath: reader, VolumeCapability: block, Readonly: true,
	})
	must(t, err)
	for _, path := range []string{target, reader} {
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode()&fs.ModeDevice == 0 || info.Mode()&fs.ModeCharDevice != 0 {
			t.Errorf("published %v", info.Mode())
		}
	}
	writes := func(path string) error {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_SYNC, 0)
		if err == nil {
			_, err = file.WriteAt([]byte("hello"), 0)
			err = errors.Join(err, file.Close())
		}
		return err
	}
	must(t, writes(target))
	if writes(reader) == nil {
		t.Error("the read-only device was written to")
	}
	_, err = r.NodeUnpublishVolume(r.ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: reader})
	must(t, err)
	must(t, writes(target))
	r.unpublish(t, id, staging, target)
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	must(t, err)
	for _, file := range files {
		content, _ := os.ReadFile(file)
		if strings.Contains(string(content), id) {
			t.Errorf("a device is left: %s", file)
		}
	}
}

func TestNodeRefusals(t *testing.T) {
	r := start(t, plain)
	id := r.volume(t, ask("v", mib)).GetVolumeId()
	publish := func(id, staging, target string, c *csi.VolumeCapability) error {
		_, err := r.NodePublishVolume(r.ctx, &csi.NodePublishVolumeRequest{
			VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: c,
		})
		return err
	}
	target := filepath.Join(r.dir, "target")
	wantCode(t, publish("nope", r.dir, target, filesystem), codes.NotFound)
	wantCode(t, publish(id, r.dir, target, filesystem), codes.FailedPrecondition)
	wantCode(t, publish(id, r.dir, target, nil), codes.InvalidArgument)
	wantCode(t, publish(id, r.dir, "", filesystem), codes.InvalidArgument)

	single := &csi.VolumeCapability{
		AccessType: filesystem.GetAccessType(),
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER},
	}
	staging, target := r.publish(t, id, single, false)
	wantCode(t, publish(id, staging, target+"2", single), codes.FailedPrecondition)

	// What is not ours stays.
	file := filepath.Join(r.dir, "precious")
	must(t, os.WriteFile(file, []byte("x"), 0o600))
	_, err := r.NodeUnpublishVolume(r.ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: file})
	must(t, err)
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	r.unpublish(t, id, staging, target)
}
