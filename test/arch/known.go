// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// known is what pages may name.
type known struct {
	tree    *Tree
	targets map[string]bool
	tests   map[string]bool
	flags   map[string]bool
	// commands are those of our programs, and of the plugin.
	commands map[string]bool
	anchors  map[string][]string
}

// othersFlags are those of programs that are not ours.
var othersFlags = []string{
	"all", "from-oci-layout", // skopeo and oras
	"target", "build-arg", // docker
	"for", "type", "server-side", "force-conflicts", "patch", "overwrite", "image", "restart", "ignore-not-found", "wait", "output", "selector", "all-namespaces", // kubectl
	"unix-socket",    // curl
	"tags", "always", // git
	"drivername", "nodeid", "statedir", // csi-driver-host-path
}

var (
	targetLine = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	flagRow    = regexp.MustCompile("(?m)^\\| `--([^`]+)` \\|")
)

func newKnown(t *Tree) *known {
	k := &known{tree: t, targets: map[string]bool{}, tests: map[string]bool{}, flags: map[string]bool{"help": true}, commands: map[string]bool{}, anchors: map[string][]string{}}
	makefile, _ := fs.ReadFile(t.Root, "Makefile") // without one there are no targets
	for _, m := range targetLine.FindAllStringSubmatch(string(makefile), -1) {
		k.targets[m[1]] = true
	}
	// The tables in the README are made of the programs' own lists, and name what is retired too.
	readme, _ := fs.ReadFile(t.Root, "README.md")
	for _, m := range flagRow.FindAllStringSubmatch(string(readme), -1) {
		k.flags[m[1]] = true
	}
	for _, name := range othersFlags {
		k.flags[name] = true
	}
	for _, f := range t.Files {
		if f.Test {
			k.addTests(f)
		} else {
			k.addFlags(f)
			k.addCommands(f)
		}
	}
	return k
}

// addCommands finds what a program answers when it is its first argument. The completion is both programs'.
func (k *known) addCommands(f *File) {
	if !f.within("cmd") {
		return
	}
	program := path.Base(f.Dir)
	k.commands[program+" completion"] = true
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if literal, ok := n.(*ast.CompositeLit); ok {
			if name := commandOf(literal); name != "" {
				k.commands[program+" "+name], k.commands["kubectl csi "+name] = true, true
			}
		}
		return true
	})
}

// commandOf: a command has a name, and the object that it is about.
func commandOf(literal *ast.CompositeLit) string {
	texts := map[string]string{}
	for _, e := range literal.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		field, isName := pair.Key.(*ast.Ident)
		value, isText := pair.Value.(*ast.BasicLit)
		if isName && isText {
			texts[field.Name] = strings.Trim(value.Value, `"`)
		}
	}
	if texts["Object"] == "" {
		return ""
	}
	return texts["Name"]
}

func (k *known) addTests(f *File) {
	for _, d := range f.AST.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
			k.tests[fn.Name.Name] = true
		}
	}
}

// defining are the methods of a set of flags that define one, each with the place of the name among its arguments.
var defining = map[string]int{
	"BoolVar": 1, "DurationVar": 1, "Float64Var": 1, "IntVar": 1, "Int64Var": 1, "StringVar": 1, "UintVar": 1, "Uint64Var": 1, "Var": 1, "TextVar": 1,
	"Bool": 0, "Duration": 0, "Float64": 0, "Int": 0, "Int64": 0, "String": 0, "Uint": 0, "Uint64": 0, "Func": 0, "BoolFunc": 0,
}

func (k *known) addFlags(f *File) {
	ast.Inspect(f.AST, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		at, ok := defining[method.Sel.Name]
		if !ok || at >= len(call.Args) {
			return true
		}
		if name, ok := call.Args[at].(*ast.BasicLit); ok && name.Kind == token.STRING {
			if text, err := strconv.Unquote(name.Value); err == nil {
				k.flags[text] = true
			}
		}
		return true
	})
}

// hasFlag also takes the beginning of several flags, written with a dash at its end.
func (k *known) hasFlag(name string) bool {
	if !strings.HasSuffix(name, "-") {
		return k.flags[name]
	}
	for flag := range k.flags {
		if strings.HasPrefix(flag, name) {
			return true
		}
	}
	return false
}

// unlisted are the pages that the list of pages does not have.
func (k *known) unlisted() []Finding {
	const list = "docs/README.md"
	src, err := fs.ReadFile(k.tree.Root, list)
	if err != nil {
		return nil // a tree without pages
	}
	var linked []string
	for _, m := range linkTarget.FindAllStringSubmatch(string(src), -1) {
		linked = append(linked, path.Join("docs", m[1]))
	}
	var found []Finding
	for _, p := range k.tree.Texts {
		if path.Ext(p) == ".md" && p != list && !slices.Contains(linked, p) {
			found = append(found, Finding{"paper", list, "does not list " + p})
		}
	}
	return found
}
