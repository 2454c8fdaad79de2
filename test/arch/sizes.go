// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
)

const (
	maxFile       = 400
	maxFunction   = 80
	maxMain       = 60
	maxComplexity = 12
)

// checkSizes: what does not fit on a few screens is two things (R1, R2, R3).
func checkSizes(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		limit, rule := maxFile, "size (R1)"
		if f.within("cmd") && path.Base(f.Path) == "main.go" {
			limit, rule = maxMain, "size (R3)"
		}
		if n := f.lines(); n > limit {
			found = append(found, Finding{rule, f.Path, fmt.Sprintf("%d lines, %d are allowed", n, limit)})
		}
		for _, fn := range functions(f) {
			if n := t.length(fn) - t.tables(f, fn); n > maxFunction {
				found = append(found, Finding{"size (R2)", t.at(fn), fmt.Sprintf("%s has %d lines, %d are allowed", fn.Name.Name, n, maxFunction)})
			}
		}
	}
	return found
}

func functions(f *File) []*ast.FuncDecl {
	var all []*ast.FuncDecl
	for _, d := range f.AST.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			all = append(all, fn)
		}
	}
	return all
}

func (t *Tree) length(n ast.Node) int {
	return t.Fset.Position(n.End()).Line - t.Fset.Position(n.Pos()).Line + 1
}

// tables counts the lines of a test's table, which is data and is not what the rule is about (R31).
func (t *Tree) tables(f *File, fn *ast.FuncDecl) int {
	if !f.Test || fn.Body == nil {
		return 0
	}
	lines := 0
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		switch literal.Type.(type) {
		case *ast.ArrayType, *ast.MapType:
			lines += t.length(literal) - 1
			return false
		}
		return true
	})
	return lines
}

// checkComplexity counts ways through a function: one, and one more for every branch (R2). Tests are exempt; their branches are
// rows.
func checkComplexity(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if f.Test {
			continue
		}
		for _, fn := range functions(f) {
			if n := complexity(fn); n > maxComplexity {
				found = append(found, Finding{"complexity (R2)", t.at(fn), fmt.Sprintf("%s has %d ways through, %d are allowed", fn.Name.Name, n, maxComplexity)})
			}
		}
	}
	return found
}

func complexity(fn *ast.FuncDecl) int {
	ways := 1
	ast.Inspect(fn, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			ways++
		case *ast.CaseClause:
			if x.List != nil {
				ways++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				ways++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				ways++
			}
		}
		return true
	})
	return ways
}
