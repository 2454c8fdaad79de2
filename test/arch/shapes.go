// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"slices"
)

const (
	maxParams   = 5
	maxResults  = 3
	maxReceiver = 2
)

// checkSignatures: a call can be read without its declaration (R4).
func checkSignatures(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if f.Test || !f.within("pkg") {
			continue
		}
		for _, fn := range functions(f) {
			for _, what := range signatureFaults(f, fn) {
				found = append(found, Finding{"signature (R4)", t.at(fn), fn.Name.Name + " " + what})
			}
		}
	}
	return found
}

func signatureFaults(f *File, fn *ast.FuncDecl) []string {
	params, results := flat(fn.Type.Params), flat(fn.Type.Results)
	var faults []string
	if len(params) > maxParams {
		faults = append(faults, fmt.Sprintf("takes %d parameters, %d are allowed: make a struct", len(params), maxParams))
	}
	if len(results) > maxResults {
		faults = append(faults, fmt.Sprintf("returns %d results, %d are allowed: make a struct", len(results), maxResults))
	}
	faults = append(faults, orderFaults(f, params, results)...)
	isTold := slices.Contains(foreignNames, fn.Name.Name)
	if fn.Name.IsExported() && !isTold && slices.ContainsFunc(params, func(p ast.Expr) bool { return isNamed(p, "bool") }) {
		faults = append(faults, "takes a bool: two names or an options struct say more")
	}
	return faults
}

func orderFaults(f *File, params, results []ast.Expr) []string {
	var faults []string
	for i, p := range params {
		if i > 0 && isContextType(f, p) && !isContextType(f, params[i-1]) {
			faults = append(faults, "takes a context after something else")
		}
	}
	for i, r := range results {
		if isNamed(r, "error") && i < len(results)-1 {
			faults = append(faults, "returns an error that is not its last result")
		}
	}
	return faults
}

// flat repeats a type for each name that shares it.
func flat(list *ast.FieldList) []ast.Expr {
	if list == nil {
		return nil
	}
	var all []ast.Expr
	for _, field := range list.List {
		for range max(1, len(field.Names)) {
			all = append(all, field.Type)
		}
	}
	return all
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func isContextType(f *File, e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Context" {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && f.names()[id.Name] == "context"
}

// checkReceivers: short names, and always a pointer or always a value for one type (R8).
func checkReceivers(t *Tree) []Finding {
	type key struct{ dir, name string }
	pointer := map[key]bool{}
	var found []Finding
	for _, f := range t.Files {
		if f.Test || !f.within("pkg") {
			continue
		}
		for _, fn := range functions(f) {
			if fn.Recv == nil || len(fn.Recv.List) != 1 {
				continue
			}
			recv := fn.Recv.List[0]
			if len(recv.Names) == 1 && len(recv.Names[0].Name) > maxReceiver {
				found = append(found, Finding{"receiver (R8)", t.at(fn), "receiver " + recv.Names[0].Name + " is longer than two letters"})
			}
			name, isPointer := receiverType(recv.Type)
			k := key{f.Dir, name}
			if was, seen := pointer[k]; seen && was != isPointer {
				found = append(found, Finding{"receiver (R8)", t.at(fn), "methods of " + name + " have pointer and value receivers"})
			}
			pointer[k] = isPointer
		}
	}
	return found
}

func receiverType(e ast.Expr) (name string, isPointer bool) {
	if star, ok := e.(*ast.StarExpr); ok {
		e, isPointer = star.X, true
	}
	switch x := e.(type) {
	case *ast.IndexExpr:
		e = x.X
	case *ast.IndexListExpr:
		e = x.X
	}
	if id, ok := e.(*ast.Ident); ok {
		name = id.Name
	}
	return name, isPointer
}
