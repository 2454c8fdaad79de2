// SPDX-License-Identifier: Apache-2.0

package node

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

func TestMountsBelow(t *testing.T) {
	table := "1 0 8:1 / / rw - ext4 x rw\n2 1 8:1 /a /t/n/one rw - ext4 x rw\n3 1 0:6 /loop3 /t/n/a\\040b rw - devtmpfs x rw\n4 1 8:1 /b /t/nn/two rw - ext4 x rw\n"
	if got := MountsBelow(table, "/t/n"); !slices.Equal(got, []string{"/t/n/one", "/t/n/a b"}) {
		t.Errorf("mounts %q", got)
	}
	if got := mountedLoops(table, "/t/n"); !slices.Equal(got, []string{"/dev/loop3"}) {
		t.Errorf("devices %q", got)
	}
}

// A run that lives is not to be touched, and a mark that says nothing is no leave to remove a folder, nor a reason for all later runs to
// fail: after a power cut a file may be empty.
func TestSweepLeavesAlone(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	precious := t.TempDir()
	living, err := Announce(precious, precious)
	if err != nil {
		t.Fatal(err)
	}
	if err := Sweep(io.Discard); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error("the folder of a run that lives is gone")
	}
	if err := living.Erase(); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "{}", `{"group": "csi-tandem-odd", "dir": "relative", "remove": "` + precious + `"}`, `{"group": "system.slice", "dir": "/none/n", "remove": "/none"}`} {
		path := filepath.Join(filepath.Dir(living.path), "odd.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		if err := Sweep(&said); err != nil || !strings.HasPrefix(said.String(), path+" does not say") || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("%q: %v, %q", text, err, said.String())
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%q is still there, and every run ends here", text)
		}
		if _, err := os.Stat(precious); err != nil {
			t.Errorf("%q was taken for a mark", text)
		}
	}
}

// A run may end, or another one may have swept what it left, between the moment when its mark is found and the one when the lock is had.
// Catches a look at the lock alone: the folder of a run that has ended in order, with the logs that it keeps, is removed, and its own
// mark then cannot be.
func TestSweepOfARunThatHasJustEnded(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	kept := t.TempDir()
	ending, err := Announce(kept, kept)
	if err != nil {
		t.Fatal(err)
	}
	found, err := os.Open(ending.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := ending.Erase(); err != nil {
		t.Error(err)
	}
	var said strings.Builder
	if err := sweepOpen(ending.path, found, &said); err != nil || said.Len() > 0 {
		t.Errorf("it says %q, %v", said.String(), err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error("what the run has kept is gone")
	}
	// Somebody else's mark under that name is not ours to judge by the old file.
	if found, err = os.CreateTemp(t.TempDir(), "old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ending.path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sweepOpen(ending.path, found, &said); err != nil {
		t.Error(err)
	}
	// Two may want to remove what is gone.
	if err := (&Mark{path: filepath.Join(kept, "none"), file: mustOpen(t)}).Erase(); err != nil {
		t.Error(err)
	}
}

func mustOpen(t *testing.T) *os.File {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Whoever looks at a log is no leftover, or a demo fails, and the next ones too, until somebody closes a pager. What was compiled for a
// run is one.
func TestLeftProcesses(t *testing.T) {
	dir := t.TempDir()
	nodes := filepath.Join(dir, "n")
	log, own := filepath.Join(nodes, "kubelet.log"), filepath.Join(dir, "bin", "driver")
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	content, err := os.ReadFile(sh)
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{log: nil, own: content} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		program string
		isOurs  bool
	}{{sh, false}, {own, true}} {
		cmd := exec.Command(tt.program, "-c", "read x", log)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		err = left("csi-tandem-none-"+filepath.Base(dir), nodes, dir)
		if isNamed := err != nil && strings.Contains(err.Error(), "process "+fmt.Sprint(cmd.Process.Pid)+" ("); isNamed != tt.isOurs {
			t.Errorf("%s: %v", tt.program, err)
		}
		_ = in.Close() // It reads the end.
		_ = cmd.Wait() // With no line, that is a failure.
	}
}

// A kubelet's device on top of a driver's holds it: freed in the other order, or not seen at all since its file has no path
// here, it would stay for ever.
func TestLoopsOnTopAreFreedToo(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "image")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var below string
	for _, path := range []string{file, "below"} {
		if path == "below" {
			path = below
		}
		said, err := exec.Command("losetup", "--find", "--show", path).Output()
		if err != nil {
			_ = freeLoops(dir) // Without the second there may be a first.
			t.Skip("there are no loop devices: ", err)
		}
		below = strings.TrimSpace(string(said))
	}
	if found := loopsOf(dir); len(found) != 2 || found[1] != below {
		t.Errorf("found %q, want two with %s on top", found, below)
	}
	if err := freeLoops(dir); err != nil {
		t.Error(err)
	}
	if found := loopsOf(dir); len(found) > 0 {
		t.Errorf("left %q", found)
	}
}

// Catches a search by the path of a device's file alone: where the folder for temporary files is a mount that went with the namespace of the
// nodes, the kernel tells a path without it, and the device stays for ever.
func TestLoopsOfAMountThatIsGone(t *testing.T) {
	dir := t.TempDir()
	const script = `mount -t tmpfs tandem "$0" && truncate -s 1M "$0/file" && losetup --find "$0/file"`
	if said, err := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", script, dir).CombinedOutput(); err != nil {
		t.Skipf("there are no loop devices, or no mounts: %v: %s", err, said)
	}
	if found := loopsOf(dir); len(found) != 1 {
		t.Errorf("found %q", found)
	}
	if err := freeLoops(dir); err != nil {
		t.Error(err)
	}
}

// What containerd imports has to have both names, and parts of the sizes and digests that are told.
func TestPackedImage(t *testing.T) {
	content, err := pack([]byte("layer"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(files["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range index.Manifests {
		names = append(names, m.Annotations["io.containerd.image.name"])
		blob := files["blobs/sha256/"+strings.TrimPrefix(m.Digest, "sha256:")]
		if len(blob) != m.Size {
			t.Errorf("manifest %s has %d bytes, not %d", m.Digest, len(blob), m.Size)
		}
	}
	if !slices.Equal(names, []string{SandboxImage, Shell}) {
		t.Errorf("names %q", names)
	}
}

// Catches a file of its own for each try: what a killed one has left, nobody removes from the cache.
func TestImageWritesOverWhatWasLeft(t *testing.T) {
	if _, err := findBusybox(); err != nil {
		t.Skip(err)
	}
	built := tools{dir: t.TempDir(), machine: "/bin/sh"}
	if err := os.WriteFile(built.path("image.tar.new"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	var nodes errgroup.Group
	for range 3 {
		nodes.Go(func() error {
			_, err := built.image(t.Context())
			return err
		})
	}
	if err := nodes.Wait(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(built.dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "image.tar" {
		t.Errorf("in the folder: %v, %v", entries, err)
	}
}
