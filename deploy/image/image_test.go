// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const tinyVersion = "v9.8.7-1-gabcdef0"

// tinyModule is a module with two programs of the names of ours, which takes seconds to build.
func tinyModule(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module example.com/tiny\n\ngo 1.26\n")
	for _, name := range []string{"provisioner", "snapshotter"} {
		write(t, filepath.Join(root, "cmd", name, "main.go"), "package main\n\nvar version string\n\nfunc main() { println(\""+name+"\", version) }\n")
	}
	return root
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func build(t *testing.T, root string, more ...string) (out, said string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "layouts")
	var text bytes.Buffer
	if err := run(t.Context(), append([]string{"-root", root, "-out", out, "-version", tinyVersion}, more...), &text); err != nil {
		t.Fatal(err)
	}
	return out, strings.ReplaceAll(text.String(), out+"/", "")
}

// TestTwoBuildsGiveOneDigest would catch a time or the name of a folder in an image: the second build is one of the same sources
// that lie somewhere else.
func TestTwoBuildsGiveOneDigest(t *testing.T) {
	_, first := build(t, tinyModule(t), "-twice")
	_, second := build(t, tinyModule(t))
	if first != second {
		t.Errorf("first\n%s\nsecond\n%s", first, second)
	}
	if lines := strings.Split(strings.TrimSpace(first), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[2], "snapshot-controller:"+tinyVersion+" sha256:") {
		t.Errorf("said %q", first)
	}
	other := tinyModule(t)
	write(t, filepath.Join(other, "cmd", "snapshotter", "main.go"), "package main\n\nvar version string\n\nfunc main() { println(version) }\n")
	_, third := build(t, other, "-arch", "amd64,arm64")
	if a, b := strings.Split(first, "\n"), strings.Split(third, "\n"); a[0] != b[0] || a[1] == b[1] || a[2] == b[2] {
		t.Errorf("after a change in the snapshotter alone:\n%s\nbefore:\n%s", third, first)
	}
}

// TestLayouts reads what a registry would get.
func TestLayouts(t *testing.T) {
	out, _ := build(t, tinyModule(t))
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for _, i := range images() {
		path, err := layout.FromPath(filepath.Join(out, i.name))
		if err != nil {
			t.Fatal(err)
		}
		all, err := path.ImageIndex()
		if err != nil {
			t.Fatal(err)
		}
		top, err := all.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(top.Manifests) != 3 || top.Manifests[0].Annotations[refName] != tinyVersion || !top.Manifests[0].MediaType.IsIndex() {
			t.Fatalf("%s: the layout lists %+v", i.name, top.Manifests)
		}
		image, err := all.ImageIndex(top.Manifests[0].Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(image); err != nil {
			t.Errorf("%s: %v", i.name, err)
		}
		list, err := image.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		var arches []string
		for n, d := range list.Manifests {
			arches = append(arches, d.Platform.OS+"/"+d.Platform.Architecture)
			img, err := image.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			program := checkImage(t, i, img, machines[d.Platform.Architecture])
			bom, err := path.Image(top.Manifests[n+1].Digest)
			if err != nil {
				t.Fatal(err)
			}
			checkReferrer(t, bom, d.Digest, program)
		}
		if !slices.Equal(arches, []string{"linux/amd64", "linux/arm64"}) {
			t.Errorf("%s is for %v", i.name, arches)
		}
	}
}

// checkImage returns the program that is all there is in the image.
func checkImage(t *testing.T, i image, img v1.Image, machine elf.Machine) []byte {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/" + i.name}) || len(c.Cmd)+len(c.Env)+len(c.Volumes)+len(c.ExposedPorts) > 0 {
		t.Errorf("%s: configuration %+v", i.name, c)
	}
	want := map[string]string{
		"org.opencontainers.image.title": i.title, "org.opencontainers.image.description": i.about, "org.opencontainers.image.version": tinyVersion,
		"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.created": "1970-01-01T00:00:00Z",
		"org.opencontainers.image.source": "https://example.com/tiny",
	}
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(c.Labels, want) || !maps.Equal(manifest.Annotations, want) {
		t.Errorf("%s: labels %v, annotations %v", i.name, c.Labels, manifest.Annotations)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%s: %d layers, %v", i.name, len(layers), err)
	}
	packed, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	files := tar.NewReader(packed)
	header, err := files.Next()
	if err != nil {
		t.Fatal(err)
	}
	if header.Name != i.name || header.Typeflag != tar.TypeReg || header.Mode != 0o555 || header.Uid != 0 || header.ModTime.Unix() != 0 {
		t.Errorf("%s: the layer holds %+v", i.name, header)
	}
	program, err := io.ReadAll(files)
	if err != nil {
		t.Fatal(err)
	}
	if next, err := files.Next(); err != io.EOF {
		t.Errorf("%s: the layer also holds %+v, %v", i.name, next, err)
	}
	checkProgram(t, program, machine)
	return program
}

// checkProgram: from scratch there is no loader, so a program that needs one does not start.
func checkProgram(t *testing.T, program []byte, machine elf.Machine) {
	t.Helper()
	parsed, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Machine != machine {
		t.Errorf("a program for %v where %v was named", parsed.Machine, machine)
	}
	for _, p := range parsed.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Error("the program is not static")
		}
	}
	if parsed.Section(".symtab") != nil || !bytes.Contains(program, []byte(tinyVersion)) {
		t.Error("the program is not stripped, or not stamped")
	}
}

func checkReferrer(t *testing.T, bom v1.Image, subject v1.Hash, program []byte) {
	t.Helper()
	manifest, err := bom.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Subject == nil || manifest.Subject.Digest != subject || manifest.Config.MediaType != typeSPDX || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != typeSPDX {
		t.Fatalf("the SBOM's manifest is %+v", manifest)
	}
	layer, err := bom.LayerByDigest(manifest.Layers[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	var d document
	if err := json.NewDecoder(raw).Decode(&d); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(program)
	if got := d.Files[0].Checksums[1]; got != (checksum{"SHA256", hex.EncodeToString(sum[:])}) {
		t.Errorf("the SBOM is about a file with %v", got)
	}
}

// TestWhatFailsLeavesTheOldLayout: half an image must never lie where a whole one was.
func TestWhatFailsLeavesTheOldLayout(t *testing.T) {
	root := tinyModule(t)
	out, _ := build(t, root, "-arch", "amd64")
	index := filepath.Join(out, "provisioner", "index.json")
	before, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "cmd", "provisioner", "main.go"), "package main\n")
	if err := run(t.Context(), []string{"-root", root, "-out", out, "-arch", "amd64"}, io.Discard); err == nil {
		t.Error("a program without main was built")
	}
	after, err := os.ReadFile(index)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the old layout is another now: %v", err)
	}
	left, err := os.ReadDir(out)
	if err != nil || len(left) != len(images()) {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRefusals(t *testing.T) {
	for _, args := range [][]string{{"-version", "a b"}, {"-version", ""}, {"-version", "-x"}, {"-arch", "amd64,"}, {"-arch", "no-such"}, {"-nothing"}} {
		if err := run(t.Context(), append([]string{"-root", t.TempDir(), "-out", t.TempDir()}, args...), io.Discard); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}
