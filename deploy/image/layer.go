// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user has no name and no rights; the sample deployments run as the same.
const user = "65532:65532"

// imageOf puts one binary into an image of its own.
func imageOf(i image, version string, b binary) (v1.Image, error) {
	layer, err := layerOf(i.name, b)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: b.created()}
	img, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), &v1.ConfigFile{
		OS: "linux", Architecture: b.arch, Created: created,
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{User: user, WorkingDir: "/", Entrypoint: []string{"/" + i.name}, Labels: labels(i, version, b)},
	})
	if err != nil {
		return nil, fmt.Errorf("setting the configuration: %w", err)
	}
	img, err = mutate.Append(img, mutate.Addendum{
		Layer: layer, History: v1.History{Created: created, CreatedBy: "go build -trimpath " + i.program},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the program: %w", err)
	}
	return mutate.Annotations(img, labels(i, version, b)).(v1.Image), nil
}

// labels say what the image is and what it was built from, under the names that the OCI gave such facts.
func labels(i image, version string, b binary) map[string]string {
	const prefix = "org.opencontainers.image."
	all := map[string]string{
		prefix + "title": i.title, prefix + "description": i.about, prefix + "version": version, prefix + "licenses": "Apache-2.0",
		prefix + "created": b.created().Format(time.RFC3339),
	}
	if source := b.source(); source != "" {
		all[prefix+"source"] = source
	}
	if revision := b.revision(); revision != "" {
		all[prefix+"revision"] = revision
	}
	return all
}

// layerOf holds the program under the name by which it is to be called, and nothing else.
func layerOf(name string, b binary) (v1.Layer, error) {
	program, err := os.ReadFile(b.file)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	out := tar.NewWriter(&packed)
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Mode: 0o555, Size: int64(len(program)), ModTime: b.created(), Format: tar.FormatPAX,
	}
	if err := out.WriteHeader(header); err != nil {
		return nil, fmt.Errorf("packing %s: %w", name, err)
	}
	if _, err := out.Write(program); err != nil {
		return nil, fmt.Errorf("packing %s: %w", name, err)
	}
	if err := out.Close(); err != nil {
		return nil, fmt.Errorf("packing %s: %w", name, err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}
