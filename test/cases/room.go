// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// room is the test files of one folder. A table may stand outside the test that goes through it, and a check in a function that
// several tests call; so it is known who names whom.
type room struct {
	dir   string
	fset  *token.FileSet
	units []*unit
}

// unit is one declaration.
type unit struct {
	names  []string
	isTest bool
	uses   map[string]bool
	found  []mention
}

func (r *room) read(f *ast.File) {
	for _, d := range f.Decls {
		u := &unit{uses: map[string]bool{}}
		switch x := d.(type) {
		case *ast.FuncDecl:
			u.names = []string{x.Name.Name}
			u.isTest = isTest(x)
			if u.isTest {
				r.take(u, inName(x.Name.Name), x.Pos(), subject{})
			}
			r.comment(u, x.Doc, nil)
		case *ast.GenDecl:
			u.names = declared(x)
			r.comment(u, x.Doc, nil)
		}
		r.inside(u, f, d)
		r.units = append(r.units, u)
	}
}

func isTest(fn *ast.FuncDecl) bool {
	for _, kind := range []string{"Test", "Fuzz"} {
		rest, ok := strings.CutPrefix(fn.Name.Name, kind)
		first, _ := utf8.DecodeRuneInString(rest)
		if ok && fn.Recv == nil && fn.Name.Name != "TestMain" && !unicode.IsLower(first) {
			return len(fn.Type.Params.List) == 1
		}
	}
	return false
}

func declared(d *ast.GenDecl) []string {
	var names []string
	for _, spec := range d.Specs {
		switch x := spec.(type) {
		case *ast.ValueSpec:
			for _, name := range x.Names {
				names = append(names, name.Name)
			}
		case *ast.TypeSpec:
			names = append(names, x.Name.Name)
		}
	}
	return names
}

// inside reads strings and comments, and notes every name in use.
func (r *room) inside(u *unit, f *ast.File, d ast.Decl) {
	names := map[*ast.BasicLit]bool{}
	lines := map[int]string{}
	ast.Inspect(d, func(n ast.Node) bool {
		for _, name := range namesIn(n) {
			names[name] = true
		}
		switch x := n.(type) {
		case *ast.Ident:
			u.uses[x.Name] = true
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			r.text(u, x, names[x], lines)
		}
		return true
	})
	for _, c := range f.Comments {
		if c.Pos() > d.Pos() && c.End() < d.End() {
			r.comment(u, c, lines)
		}
	}
}

func (r *room) text(u *unit, x *ast.BasicLit, isName bool, lines map[int]string) {
	text, err := strconv.Unquote(x.Value)
	if x.Kind != token.STRING || err != nil {
		return
	}
	if line := r.line(x.Pos()); isName && lines[line] == "" {
		lines[line] = text
	}
	refs, _ := leading(text)
	r.take(u, refs, x.Pos(), subject{text: text, isName: isName})
}

// namesIn finds what names a subtest: the first argument of t.Run, and in tables the names of the rows.
func namesIn(n ast.Node) []*ast.BasicLit {
	var found []ast.Expr
	switch x := n.(type) {
	case *ast.CallExpr:
		if sel, ok := x.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Run" && len(x.Args) == 2 {
			found = append(found, x.Args[0])
		}
	case *ast.CompositeLit:
		found = rowNames(x)
	}
	var names []*ast.BasicLit
	for _, e := range found {
		for sum, ok := e.(*ast.BinaryExpr); ok; sum, ok = e.(*ast.BinaryExpr) {
			e = sum.X
		}
		if lit, ok := e.(*ast.BasicLit); ok {
			names = append(names, lit)
		}
	}
	return names
}

// rowNames are the first or the name field of a row, the keys of a map, and the elements of a list of strings.
func rowNames(x *ast.CompositeLit) []ast.Expr {
	var found []ast.Expr
	list, isList := x.Type.(*ast.ArrayType)
	isList = isList && isCalled(list.Elt, "string")
	for i, e := range x.Elts {
		field, ok := e.(*ast.KeyValueExpr)
		switch {
		case !ok && (i == 0 || isList):
			found = append(found, e)
		case ok && (isCalled(field.Key, "name") || isCalled(field.Key, "Name")):
			found = append(found, field.Value)
		case ok:
			found = append(found, field.Key)
		}
	}
	return found
}

func isCalled(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// comment: inside a test a comment is about the row that it stands beside or above, if there is one.
func (r *room) comment(u *unit, c *ast.CommentGroup, lines map[int]string) {
	if c == nil {
		return
	}
	row := lines[r.line(c.Pos())]
	if row == "" {
		row = lines[r.line(c.End())+1]
	}
	r.take(u, inComment(c.Text()), c.Pos(), subject{text: row, isName: row != ""})
}

func (r *room) take(u *unit, refs []ref, pos token.Pos, about subject) {
	for _, one := range refs {
		u.found = append(u.found, mention{ref: one, dir: r.dir, file: r.fset.Position(pos).Filename, line: r.line(pos), about: about})
	}
}

func (r *room) line(pos token.Pos) int { return r.fset.Position(pos).Line }

func (r *room) mentions() []mention {
	var all []mention
	for _, u := range r.units {
		if len(u.found) == 0 {
			continue
		}
		tests := r.testsOf(u)
		for _, m := range u.found {
			m.tests = tests
			all = append(all, m)
		}
	}
	return all
}

// testsOf goes from what is named to who names it, until it meets tests.
func (r *room) testsOf(u *unit) []string {
	var tests []string
	seen := map[*unit]bool{u: true}
	for open := []*unit{u}; len(open) > 0; open = open[1:] {
		if open[0].isTest {
			tests = append(tests, open[0].names[0])
			continue
		}
		for _, other := range r.units {
			if !seen[other] && slices.ContainsFunc(open[0].names, func(name string) bool { return name != "_" && other.uses[name] }) {
				seen[other] = true
				open = append(open, other)
			}
		}
	}
	slices.Sort(tests)
	return tests
}
