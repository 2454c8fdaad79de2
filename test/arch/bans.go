// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// clockCalls read or wait for the real clock.
var clockCalls = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// chance are packages whose answers differ from run to run.
var chance = []string{"math/rand", "math/rand/v2", "crypto/rand", "k8s.io/apimachinery/pkg/util/rand", "github.com/google/uuid"}

// checkPurity is about what a pure package does; what it imports is in the table of arrows.
func checkPurity(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if f.Test || !slices.Contains(thought, strings.TrimPrefix(f.Dir, "pkg/")) {
			continue
		}
		complain := func(n ast.Node, what string) {
			found = append(found, Finding{"purity (R20)", t.at(n), what})
		}
		for _, s := range f.selectors() {
			if s.path == "time" && slices.Contains(clockCalls, s.name) {
				complain(s.node, "time."+s.name+" in a pure package: the time is an argument")
			}
			if s.path == "os" && s.name != "Expand" {
				complain(s.node, "os."+s.name+" in a pure package: only the expansion of templates is a pure function there")
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt:
				complain(n, "starts a goroutine in a pure package")
			case *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
				complain(n, "uses a channel in a pure package")
			}
			return true
		})
	}
	return found
}

// checkExit: a process ends in main, and nowhere else (R3).
func checkExit(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if !f.product() {
			continue
		}
		isMain := f.within("cmd") && path.Base(f.Path) == "main.go"
		for _, s := range f.selectors() {
			if endsProcess(s) && !(isMain && s.path == "os") {
				found = append(found, Finding{"exit (R3)", t.at(s.node), fmt.Sprintf("%s.%s outside main.go: return an error", path.Base(s.path), s.name)})
			}
		}
	}
	return found
}

func endsProcess(s selector) bool {
	fatal := strings.HasPrefix(s.name, "Fatal") || strings.HasPrefix(s.name, "Exit")
	switch {
	case s.path == "os":
		return s.name == "Exit"
	case s.path == "log":
		return fatal || strings.HasPrefix(s.name, "Panic")
	case strings.HasPrefix(s.path, "k8s.io/klog/"):
		return fatal && s.name != "ExitFlushTimeout" || s.name == "FlushAndExit"
	}
	return false
}

// checkBackground: a context that nothing can cancel is made in main only; one that is still to be thought about, nowhere (R16).
func checkBackground(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if !f.within("pkg", "cmd") {
			continue
		}
		isMain := f.within("cmd") && path.Base(f.Path) == "main.go"
		for _, s := range f.selectors() {
			if s.path != "context" {
				continue
			}
			if s.name == "TODO" || s.name == "Background" && !f.Test && !isMain {
				found = append(found, Finding{"background (R16)", t.at(s.node), "context." + s.name + ": take the caller's context"})
			}
		}
	}
	return found
}

// checkClock: time comes from the clock that is handed in, and nothing is left to chance (R17).
func checkClock(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if !f.product() || f.within("pkg/sidecar") {
			continue
		}
		for _, p := range f.imports() {
			if slices.Contains(chance, p) {
				found = append(found, Finding{"clock (R17)", f.Path, "imports " + p + ": choices follow from a hash, names from UIDs"})
			}
		}
		for _, s := range f.selectors() {
			if s.path == "time" && slices.Contains(clockCalls, s.name) {
				found = append(found, Finding{"clock (R17)", t.at(s.node), "time." + s.name + ": use the clock that is handed in"})
			}
		}
	}
	return found
}

// checkUpdate: existing objects are changed by patches only (R24), since an update through older types drops the fields they do
// not know. Without types a write is told by its shape: a context comes first, or the options of an update are named.
func checkUpdate(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if !f.product() {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if what := wholeWrite(n); what != "" {
				found = append(found, Finding{"update (R24)", t.at(n), what + ": existing objects are changed by kube.Patch only"})
			}
			return true
		})
	}
	return found
}

func wholeWrite(n ast.Node) string {
	if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "UpdateOptions" {
		return "UpdateOptions"
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	switch sel.Sel.Name {
	case "Update", "UpdateStatus", "ApplyStatus":
		if len(call.Args) >= 2 && isContext(call.Args[0]) {
			return "." + sel.Sel.Name + "(ctx, …)"
		}
	case "Put":
		if len(call.Args) == 0 {
			return ".Put()"
		}
	}
	return ""
}

func isContext(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.Ident:
		return strings.Contains(strings.ToLower(x.Name), "ctx") || x.Name == "context"
	case *ast.CallExpr:
		sel, ok := x.Fun.(*ast.SelectorExpr)
		return ok && (sel.Sel.Name == "Context" || sel.Sel.Name == "Background")
	}
	return false
}

// flagTypes are what a package may use of flag without touching the process's own set (R18).
var flagTypes = []string{"FlagSet", "NewFlagSet", "Value", "Getter", "Flag", "ErrHelp", "ContinueOnError", "ErrorHandling", "UnquoteUsage"}

// checkFlagGlobals: options are bound to the set that is handed in, so that two of them can live in one process (R18).
func checkFlagGlobals(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if !f.product() || f.within("pkg/sidecar") {
			continue
		}
		for _, s := range f.selectors() {
			if s.path == "flag" && !slices.Contains(flagTypes, s.name) {
				found = append(found, Finding{"flags (R18)", t.at(s.node), "flag." + s.name + " is a matter of the whole process: bind to the set that is handed in"})
			}
		}
	}
	return found
}
