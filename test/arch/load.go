// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Module is the import path of the tree's root.
const Module = "github.com/csi-tandem/csi-tandem"

// Tree is the parsed repository. Paths have slashes and start at the root.
type Tree struct {
	Root  fs.FS
	Fset  *token.FileSet
	Files []*File
	// Texts are all files that people read, Go files among them.
	Texts []string
}

// File is one Go file.
type File struct {
	Path string
	Dir  string
	AST  *ast.File
	Src  []byte
	Test bool
}

// skipped directories hold nothing that anybody wrote here.
var skipped = []string{".git", "bin", "out", "vendor", "testdata", "node_modules"}

// Load parses every Go file below root, nested modules included. A file that does not parse is an error: a rule that cannot
// read a file cannot vouch for it.
func Load(root fs.FS) (*Tree, error) {
	t := &Tree{Root: root, Fset: token.NewFileSet()}
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && p != "." {
			return nil // A temporary file that somebody removed between listing and reading.
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != "." && slices.Contains(skipped, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		return t.add(p)
	})
	if err != nil {
		return nil, fmt.Errorf("loading the tree: %w", err)
	}
	return t, nil
}

func (t *Tree) add(p string) error {
	if isText(p) {
		t.Texts = append(t.Texts, p)
	}
	if path.Ext(p) != ".go" {
		return nil
	}
	src, err := fs.ReadFile(t.Root, p)
	if err != nil {
		return fmt.Errorf("reading %s: %w", p, err)
	}
	file, err := parser.ParseFile(t.Fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing %s: %w", p, err)
	}
	t.Files = append(t.Files, &File{Path: p, Dir: path.Dir(p), AST: file, Src: src, Test: strings.HasSuffix(p, "_test.go")})
	return nil
}

func isText(p string) bool {
	switch path.Ext(p) {
	case ".go", ".md", ".yaml", ".yml", ".mk", ".sh", ".txt", ".mod":
		return true
	}
	return slices.Contains([]string{"Makefile", "run", ".gitignore", ".gitattributes"}, path.Base(p))
}

// within says whether the file stands in one of the trees.
func (f *File) within(trees ...string) bool {
	for _, tree := range trees {
		if f.Dir == tree || strings.HasPrefix(f.Dir, tree+"/") {
			return true
		}
	}
	return false
}

// product says whether the file becomes part of one of the two programs.
func (f *File) product() bool {
	return !f.Test && f.within("pkg", "cmd")
}

// imports are the paths that the file imports.
func (f *File) imports() []string {
	paths := make([]string, 0, len(f.AST.Imports))
	for _, spec := range f.AST.Imports {
		paths = append(paths, importPath(spec))
	}
	return paths
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return p
}

// names maps what an imported package is called in this file to its path.
func (f *File) names() map[string]string {
	names := map[string]string{}
	for _, spec := range f.AST.Imports {
		p := importPath(spec)
		if spec.Name != nil {
			names[spec.Name.Name] = p
			continue
		}
		name := path.Base(p)
		if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
			name = path.Base(path.Dir(p))
		}
		names[name] = p
	}
	return names
}

func (f *File) lines() int {
	return bytes.Count(f.Src, []byte("\n"))
}

// at names a place as file:line.
func (t *Tree) at(n ast.Node) string {
	position := t.Fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", position.Filename, position.Line)
}

// selector is a use of something from an imported package.
type selector struct {
	node ast.Node
	path string
	name string
}

// selectors finds all uses of imported packages. Local variables that hide a package are taken for it; they are better renamed.
func (f *File) selectors() []selector {
	names := f.names()
	var found []selector
	ast.Inspect(f.AST, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && names[id.Name] != "" {
			found = append(found, selector{node: sel, path: names[id.Name], name: sel.Sel.Name})
		}
		return true
	})
	return found
}
