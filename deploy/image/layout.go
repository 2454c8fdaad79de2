// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	refName   = "org.opencontainers.image.ref.name"
	typeSPDX  = "application/spdx+json"
	sbomTitle = "org.opencontainers.image.title"
)

// writeLayout writes an OCI layout with the image for all architectures under its tag, and beside it for each architecture an
// SBOM that refers to the image of that architecture. It returns the digest of the first.
func writeLayout(dir string, i image, version string, binaries []binary) (string, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	boms := make([]v1.Image, 0, len(binaries))
	for _, b := range binaries {
		img, err := imageOf(i, version, b)
		if err != nil {
			return "", err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: b.arch}},
		})
		bom, err := attachSBOM(dir, i, version, b, img)
		if err != nil {
			return "", err
		}
		boms = append(boms, bom)
	}
	index = mutate.Annotations(index, labels(i, version, binaries[0])).(v1.ImageIndex)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", fmt.Errorf("writing the layout: %w", err)
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: version})); err != nil {
		return "", fmt.Errorf("writing the image: %w", err)
	}
	for _, bom := range boms {
		if err := path.AppendImage(bom); err != nil {
			return "", fmt.Errorf("writing the SBOM: %w", err)
		}
	}
	digest, err := index.Digest()
	return digest.String(), err
}

// attachSBOM makes the artifact that registries list as a referrer of the image (OCI distribution spec, "Listing Referrers"), and
// leaves the document itself in the layout's folder for people.
func attachSBOM(dir string, i image, version string, b binary, img v1.Image) (v1.Image, error) {
	document, err := sbom(i, version, b)
	if err != nil {
		return nil, fmt.Errorf("describing %s: %w", b.arch, err)
	}
	file := fmt.Sprintf("sbom-%s.spdx.json", b.arch)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, file), document, 0o644); err != nil { //nolint:gosec // it is for everybody to read
		return nil, err
	}
	subject, err := partial.Descriptor(img)
	if err != nil {
		return nil, fmt.Errorf("referring to the image: %w", err)
	}
	artifact, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{
		Layer: static.NewLayer(document, typeSPDX), MediaType: typeSPDX, Annotations: map[string]string{sbomTitle: file},
	})
	if err != nil {
		return nil, fmt.Errorf("packing the SBOM: %w", err)
	}
	// Without a field for it in this library, the type of an artifact is that of its configuration (OCI image spec, "Guidelines for
	// Artifact Usage").
	artifact = mutate.ConfigMediaType(artifact, typeSPDX)
	subject.Platform, subject.Annotations = nil, nil
	return mutate.Subject(artifact, *subject).(v1.Image), nil
}
