// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Text is something that the code tells somebody, as it is written there, with its verbs.
type Text struct {
	// Package is where it is told, below the root of the module.
	Package string
	Format  string
	// Advice is what the code itself puts behind it, if it does.
	Advice string
}

// scan finds what the packages tell users: errors, messages of events, and advice. It knows them by the few
// functions and types that carry such texts here.
func scan(root string, packages []string) ([]Text, error) {
	var all []Text
	for _, p := range packages {
		s, err := load(root, p)
		if err != nil {
			return nil, err
		}
		if len(s.files) == 0 {
			return nil, fmt.Errorf("package %s has no files", p)
		}
		for _, f := range s.files {
			ast.Inspect(f, s.visit)
		}
		all = append(all, s.found...)
	}
	return all, nil
}

// source is one package being read.
type source struct {
	name   string
	files  []*ast.File
	consts map[string]string
	// blames are functions that put advice behind the error which they get, and reasons are advice by the name of
	// the reason that an error has.
	blames, reasons map[string]string
	found           []Text
	// taken are calls whose texts were found with the advice around them.
	taken map[ast.Node]bool
}

func load(root, name string) (*source, error) {
	s := &source{name: name, consts: map[string]string{}, blames: map[string]string{}, reasons: map[string]string{}, taken: map[ast.Node]bool{}}
	paths, err := filepath.Glob(filepath.Join(root, name, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("looking for sources: %w", err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		s.files = append(s.files, f)
	}
	// Constants may be made of others, in any order.
	for range 2 {
		for _, f := range s.files {
			ast.Inspect(f, s.learnConsts)
		}
	}
	for _, f := range s.files {
		ast.Inspect(f, s.learnAdvice)
	}
	return s, nil
}

func (s *source) learnConsts(n ast.Node) bool {
	spec, ok := n.(*ast.ValueSpec)
	if !ok {
		return true
	}
	for i, name := range spec.Names {
		if i < len(spec.Values) {
			if text, whole := s.text(spec.Values[i]); whole && text != "" {
				s.consts[name.Name] = text
			}
		}
	}
	return true
}

// learnAdvice finds the functions whose end is to advise about an error that they got, and tables of advice.
func (s *source) learnAdvice(n ast.Node) bool {
	switch d := n.(type) {
	case *ast.FuncDecl:
		if call := lastCall(d); call != nil && nameOf(call) == "advise" && len(call.Args) > 1 {
			if _, passed := call.Args[0].(*ast.Ident); passed {
				s.blames[d.Name.Name] = s.advice(call)
			}
		}
	case *ast.ValueSpec:
		if len(d.Names) == 1 && d.Names[0].Name == "advice" && len(d.Values) == 1 {
			s.learnReasons(d.Values[0])
		}
	}
	return true
}

// lastCall is the call that a function ends with, nil when it ends otherwise.
func lastCall(d *ast.FuncDecl) *ast.CallExpr {
	if d.Body == nil || len(d.Body.List) == 0 {
		return nil
	}
	last, ok := d.Body.List[len(d.Body.List)-1].(*ast.ReturnStmt)
	if !ok || len(last.Results) != 1 {
		return nil
	}
	call, _ := last.Results[0].(*ast.CallExpr)
	return call
}

func (s *source) learnReasons(value ast.Expr) {
	table, ok := value.(*ast.CompositeLit)
	if !ok {
		return
	}
	for _, element := range table.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			s.reasons[identOf(pair.Key)], _ = s.text(pair.Value)
		}
	}
}

// tellers are the functions whose argument of this number is told.
var tellers = map[string]int{
	"errors.New": 0, "fmt.Errorf": 0, "usage": 0, "failed": 1, "reject": 2, "told": 0, "Normal": 2, "Warning": 2, "Shared": 2,
	"tell": 3, "Error": 1,
}

// sayers are functions whose results are told by others, and constants likewise.
var sayers = []string{"StillAttached", "BeingRestored", "Misplaced", "tooManySegments", "standsForNothing", "onlyWider", "askedElsewhere", "report", "LeftToPopulator", "Error"}

func (s *source) visit(n ast.Node) bool {
	switch x := n.(type) {
	case *ast.CallExpr:
		s.visitCall(x, "")
	case *ast.CompositeLit:
		s.visitLiteral(x)
	case *ast.FuncDecl:
		// What an error of the driver says are the driver's words.
		if slices.Contains(sayers, x.Name.Name) && x.Body != nil && s.name != "pkg/fault" {
			s.visitSayer(x.Body)
		}
	case *ast.ValueSpec:
		if slices.Contains(sayers, x.Names[0].Name) && len(x.Values) == 1 {
			s.message(x.Values[0])
		}
	}
	return true
}

// visitSayer finds what a function puts together that others tell: what is formatted, or returned as it is.
func (s *source) visitSayer(body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			if name := nameOf(x); (name == "fmt.Sprintf" || name == "fmt.Fprintf") && len(x.Args) > 0 {
				s.message(x.Args[strings.Count(name, "Fp")])
			}
		case *ast.ReturnStmt:
			for _, result := range x.Results {
				if _, isCall := result.(*ast.CallExpr); !isCall {
					s.message(result)
				}
			}
		}
		return true
	})
}

func (s *source) visitCall(call *ast.CallExpr, advice string) {
	if s.taken[call] {
		return
	}
	name := nameOf(call)
	s.visitAdvised(name, call.Args)
	i, ok := tellers[name]
	// In explain a function of that name only joins texts of others.
	if !ok || i >= len(call.Args) || name == "told" && s.name == "pkg/explain" {
		return
	}
	if text, _ := s.text(call.Args[i]); isTelling(text) {
		if name == "failed" {
			advice = s.reasons[identOf(call.Args[0])]
		}
		s.taken[call] = true
		s.found = append(s.found, Text{s.name, text, advice})
	}
}

// visitAdvised finds the texts in a call that puts advice behind them.
func (s *source) visitAdvised(name string, args []ast.Expr) {
	if len(args) < 2 {
		return
	}
	if name == "advise" {
		s.inside(args[0], s.advice(&ast.CallExpr{Args: args}))
		return
	}
	if blame, ok := s.blames[name]; ok {
		s.inside(args[1], blame)
	}
}

// advice is what a call of advise says, with the constants that are put in.
func (s *source) advice(call *ast.CallExpr) string {
	format, _ := s.text(call.Args[1])
	next := 2
	return verb.ReplaceAllStringFunc(format, func(v string) string {
		next++
		if next-1 >= len(call.Args) {
			return v
		}
		if text, whole := s.text(call.Args[next-1]); whole {
			return text
		}
		return v
	})
}

// inside finds the texts of an expression that advice is put behind.
func (s *source) inside(around ast.Expr, advice string) {
	ast.Inspect(around, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			s.visitCall(call, advice)
		}
		return true
	})
}

// carriers are the structs with a message: where it stands if they are written without keys.
var carriers = map[string]int{"Told": 2, "Verdict": 2, "Warning": 1, "Reject": -1, "": -1}

// visitLiteral finds messages in the structs that carry them.
func (s *source) visitLiteral(l *ast.CompositeLit) {
	place, ok := carriers[identOf(l.Type)]
	if !ok {
		return
	}
	for i, element := range l.Elts {
		pair, keyed := element.(*ast.KeyValueExpr)
		switch {
		case keyed && identOf(pair.Key) == "Message":
			s.message(pair.Value)
		case !keyed && i == place:
			s.message(element)
		}
	}
}

func (s *source) message(value ast.Expr) {
	text, _ := s.text(value)
	known := slices.ContainsFunc(s.found, func(t Text) bool { return t.Format == text })
	if isTelling(text) && !known {
		s.found = append(s.found, Text{Package: s.name, Format: text})
	}
}

var (
	verb    = regexp.MustCompile(`%(?:\[\d\])?[+#]?[a-zA-Z]`)
	letters = regexp.MustCompile(`[a-zA-Z]{3}`)
)

// isTelling tells a text from what only joins others.
func isTelling(format string) bool {
	return letters.MatchString(verb.ReplaceAllString(format, "")) && !strings.Contains(format, "\n")
}

// text is what an expression says as far as its words stand in the source; whole tells that nothing is put in.
func (s *source) text(e ast.Expr) (text string, whole bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			text, err := strconv.Unquote(x.Value)
			return text, err == nil
		}
	case *ast.Ident:
		text, ok := s.consts[x.Name]
		return text, ok
	case *ast.ParenExpr:
		return s.text(x.X)
	case *ast.BinaryExpr:
		return s.sum(x)
	case *ast.CallExpr:
		if name := nameOf(x); (name == "fmt.Sprintf" || name == "told") && len(x.Args) > 0 {
			text, _ := s.text(x.Args[0])
			return text, false
		}
	}
	return "", false
}

func (s *source) sum(x *ast.BinaryExpr) (text string, whole bool) {
	left, wholeLeft := s.text(x.X)
	right, wholeRight := s.text(x.Y)
	if x.Op != token.ADD || left == "" && right == "" {
		return "", false
	}
	return fill(left) + fill(right), wholeLeft && wholeRight
}

// fill stands for what is put in.
func fill(text string) string {
	if text == "" {
		return "%s"
	}
	return text
}

// nameOf is a function's name, with the package only for those of the standard library.
func nameOf(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if from := identOf(f.X); slices.Contains([]string{"errors", "fmt", "http"}, from) {
			return from + "." + f.Sel.Name
		}
		return f.Sel.Name
	}
	return ""
}

func identOf(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}
