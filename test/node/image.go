// SPDX-License-Identifier: Apache-2.0

package node

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// descriptor points to a part of an image, as the OCI image specification has it.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    map[string]string `json:"platform,omitempty"`
}

// image packs the one image that pods use, into a file beside the programs: a process that only stays, and a busybox.
func (t tools) image(ctx context.Context) (string, error) {
	// Several nodes may want it at once. The one that was killed at it has left nothing but what the next one writes over.
	unlock, err := lockFolder(t.dir)
	if err != nil {
		return "", fmt.Errorf("packing the image: %w", err)
	}
	defer unlock()
	path := t.path("image.tar")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	layer, err := t.layer(ctx)
	if err != nil {
		return "", fmt.Errorf("packing the image: %w", err)
	}
	content, err := pack(layer)
	if err != nil {
		return "", fmt.Errorf("packing the image: %w", err)
	}
	// Nobody may find half of it.
	if err = os.WriteFile(path+".new", content, 0o600); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		_ = os.Remove(path + ".new") // What is told is why there is no image.
		return "", fmt.Errorf("writing the image: %w", err)
	}
	return path, nil
}

func lockFolder(path string) (unlock func(), err error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(folder.Fd()), unix.LOCK_EX)
		if err == nil {
			return func() { _ = folder.Close() }, nil // With it goes the lock.
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), folder.Close())
		}
	}
}

func (t tools) layer(ctx context.Context) ([]byte, error) {
	busybox, err := findBusybox()
	if err != nil {
		return nil, err
	}
	applets, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("asking busybox what it can do: %w", err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, dir := range []string{"bin", "etc", "tmp", "data"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o1777}); err != nil {
			return nil, err
		}
	}
	for name, source := range map[string]string{"bin/busybox": busybox, "pause": t.machine} {
		content, err := os.ReadFile(source)
		if err == nil {
			err = add(w, name, content, 0o755)
		}
		if err != nil {
			return nil, err
		}
	}
	for name := range strings.FieldsSeq(string(applets)) {
		if name == "busybox" {
			continue
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox", Mode: 0o777}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

func add(w *tar.Writer, name string, content []byte, mode int64) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: mode}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// pack writes an OCI layout with one image of one layer, under both of its names.
func pack(layer []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	blob := func(kind string, content []byte) (descriptor, error) {
		sum := sha256.Sum256(content)
		name := hex.EncodeToString(sum[:])
		return descriptor{MediaType: kind, Digest: "sha256:" + name, Size: len(content)}, add(w, filepath.Join("blobs", "sha256", name), content, 0o644)
	}
	const oci = "application/vnd.oci.image."
	layerPart, err := blob(oci+"layer.v1.tar", layer)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/pause", "pause"}, "Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layerPart.Digest}},
	})
	if err != nil {
		return nil, err
	}
	configPart, err := blob(oci+"config.v1+json", config)
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": oci + "manifest.v1+json", "config": configPart, "layers": []descriptor{layerPart},
	})
	if err != nil {
		return nil, err
	}
	var manifests []descriptor
	part, err := blob(oci+"manifest.v1+json", manifest)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{SandboxImage, Shell} {
		part.Annotations = map[string]string{"io.containerd.image.name": name}
		part.Platform = map[string]string{"architecture": runtime.GOARCH, "os": "linux"}
		manifests = append(manifests, part)
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": oci + "index.v1+json", "manifests": manifests})
	if err == nil {
		err = add(w, "index.json", index, 0o644)
	}
	if err == nil {
		err = add(w, "oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
	}
	if err != nil {
		return nil, err
	}
	return out.Bytes(), w.Close()
}
