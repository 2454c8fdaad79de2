// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const crdKind = "CustomResourceDefinition"

// parsePaths reads every object of files, and of folders with all that is below them.
func parsePaths(paths []string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, name := range paths {
		absolute, err := filepath.Abs(name)
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", name, err)
		}
		found, err := parseFS(os.DirFS(filepath.Dir(absolute)), filepath.Base(absolute))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

func parseFS(files fs.FS, roots ...string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, root := range roots {
		err := fs.WalkDir(files, root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || (name != root && !isManifest(name)) {
				return err
			}
			data, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			found, err := parseManifest(data)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			objects = append(objects, found...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// isManifest is for files met in folders; a file that was named itself is always read.
func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// parseManifest reads the documents of a YAML stream; a list counts as its members.
func parseManifest(data []byte) ([]*unstructured.Unstructured, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var objects []*unstructured.Unstructured
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		found, err := parseDocument(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		objects = append(objects, found...)
	}
}

func parseDocument(document []byte) ([]*unstructured.Unstructured, error) {
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	if string(bytes.TrimSpace(text)) == "null" {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	if !object.IsList() {
		if object.GetName() == "" {
			return nil, fmt.Errorf("a %s without a name cannot be applied", object.GetKind())
		}
		return []*unstructured.Unstructured{object}, nil
	}
	var objects []*unstructured.Unstructured
	err = object.EachListItem(func(item runtime.Object) error {
		member, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("a list member of type %T", item)
		}
		objects = append(objects, member)
		return nil
	})
	return objects, err
}

// inApplyOrder puts first what others need; the order is otherwise that of the files.
func inApplyOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	rank := map[string]int{"Namespace": -2, crdKind: -1}
	return slices.SortedStableFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int {
		return rank[a.GetKind()] - rank[b.GetKind()]
	})
}
