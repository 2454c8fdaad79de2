// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// Manifest is one document of a YAML file that Kubernetes reads.
type Manifest struct {
	Path   string
	Object runtime.Object
}

// loose are kinds for which no Go type is at hand here; for them only the head is read.
var loose = []string{"Component", "CustomResourceDefinition", "Kustomization", "ReferenceGrant"}

// Manifests decodes every YAML file of the trees, strictly: an unknown or doubled field is a slip that the API server would
// drop in silence.
func Manifests(root fs.FS, trees ...string) ([]Manifest, []Finding) {
	decode, err := strictDecoder()
	if err != nil {
		return nil, []Finding{{"manifest", ".", err.Error()}}
	}
	var all []Manifest
	var found []Finding
	for _, tree := range trees {
		err := fs.WalkDir(root, tree, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, path.Ext(p)) {
				return err
			}
			manifests, faults := readManifests(root, p, decode)
			all, found = append(all, manifests...), append(found, faults...)
			return nil
		})
		if err != nil {
			found = append(found, Finding{"manifest", tree, err.Error()})
		}
	}
	return all, found
}

type decoder func(document []byte) (runtime.Object, error)

func strictDecoder() (decoder, error) {
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		return nil, fmt.Errorf("registering Kubernetes types: %w", err)
	}
	if err := snapv1.AddToScheme(known); err != nil {
		return nil, fmt.Errorf("registering snapshot types: %w", err)
	}
	universal := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	return func(document []byte) (runtime.Object, error) {
		object, _, err := universal.Decode(document, nil, nil)
		return object, err
	}, nil
}

func readManifests(root fs.FS, p string, decode decoder) ([]Manifest, []Finding) {
	src, err := fs.ReadFile(root, p)
	if err != nil {
		return nil, []Finding{{"manifest", p, err.Error()}}
	}
	var manifests []Manifest
	var found []Finding
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(src)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return manifests, found
		}
		if err != nil {
			return manifests, append(found, Finding{"manifest", p, err.Error()})
		}
		object, err := readDocument(root, p, document, decode)
		if err != nil {
			found = append(found, Finding{"manifest", p, err.Error()})
		} else if object != nil {
			manifests = append(manifests, Manifest{p, object})
		}
	}
}

// head is what every document has, and what is checked of those without a type. It is not strict, so other fields pass.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Resources  []string `json:"resources"`
	Components []string `json:"components"`
	Spec       struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
	} `json:"spec"`
}

func readDocument(root fs.FS, p string, document []byte, decode decoder) (runtime.Object, error) {
	if onlyComments(document) {
		return nil, nil
	}
	var h head
	if err := yaml.Unmarshal(document, &h); err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	switch {
	case h.APIVersion == "" || h.Kind == "":
		return nil, errors.New("a document without apiVersion or kind")
	case slices.Contains(loose, h.Kind):
		return nil, checkLoose(root, p, h)
	}
	return decode(document)
}

func checkLoose(root fs.FS, p string, h head) error {
	switch h.Kind {
	case "CustomResourceDefinition":
		if want := h.Spec.Names.Plural + "." + h.Spec.Group; h.Metadata.Name != want {
			return fmt.Errorf("the definition is called %q and defines %q", h.Metadata.Name, want)
		}
	case "Component", "Kustomization":
		for _, resource := range slices.Concat(h.Resources, h.Components) {
			if _, err := fs.Stat(root, path.Join(path.Dir(p), resource)); err != nil {
				return fmt.Errorf("names a resource that is not there: %w", err)
			}
		}
	}
	return nil
}

func onlyComments(document []byte) bool {
	for line := range strings.Lines(string(document)) {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}
