// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ProtocolKeys are all strings of the source files of a folder that can be the key of an annotation: of the folder of package
// wellknown, all that anybody could write on an object in the hope that a room reads it.
func ProtocolKeys(t testing.TB, dir string) []string {
	t.Helper()
	var keys []string
	for _, path := range sources(t, dir) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err == nil && len(validation.IsQualifiedName(text)) == 0 {
				keys = append(keys, text)
			}
			return true
		})
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func sources(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := fs.ReadDir(os.DirFS(dir), ".")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}
