// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// results of a case; the worst comes first.
const (
	resultFailed  = "failed"
	resultPassed  = "passed"
	resultNotRun  = "not run"
	resultNone    = "no test yet"
	resultInvalid = "n/a"
)

// event is one line of `go test -json`.
type event struct {
	Action, Package, Test, Output string
}

// outcomes say how tests ended, by folder and by name; the name "" is the package as a whole.
type outcomes struct {
	module string
	ended  map[string]map[string]string
	kept   map[string][]string
}

// read takes the events of go; what a test wrote is shown once it has failed.
func (o *outcomes) read(events io.Reader, progress io.Writer) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) == nil:
			o.take(e, progress)
		default:
			fmt.Fprintf(progress, "%s", line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the events of go test: %w", err)
		}
	}
}

func (o *outcomes) take(e event, progress io.Writer) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(progress, e.Output)
	case "output":
		o.kept[key] = append(o.kept[key], e.Output)
	case "pass", "fail", "skip":
		o.end(e)
		for _, line := range o.kept[key] {
			if e.Action == "fail" && !strings.HasPrefix(line, "=== ") || e.Test == "" && strings.HasPrefix(line, "ok") {
				fmt.Fprint(progress, line)
			}
		}
		delete(o.kept, key)
		if e.Test == "" && e.Action == "fail" {
			o.showUnfinished(e.Package, progress)
		}
	}
}

// showUnfinished: where a process ends in the middle, the reason is with the test that did not come to its end.
func (o *outcomes) showUnfinished(pkg string, progress io.Writer) {
	for key, lines := range o.kept {
		if strings.HasPrefix(key, pkg+" ") {
			fmt.Fprint(progress, strings.Join(lines, ""))
			delete(o.kept, key)
		}
	}
}

func (o *outcomes) end(e event) {
	dir := "."
	if e.Package != o.module {
		dir = strings.TrimPrefix(e.Package, o.module+"/")
	}
	if o.ended[dir] == nil {
		o.ended[dir] = map[string]string{}
	}
	o.ended[dir][e.Test] = map[string]string{"pass": resultPassed, "fail": resultFailed, "skip": resultNotRun}[e.Action]
}

// of tells how the tests that get to a mention ended, the worst of them.
func (o *outcomes) of(m mention) string {
	var results []string
	for _, test := range m.tests {
		results = append(results, o.ofTest(m, test))
	}
	return worst(results)
}

// ofTest: a test that is not heard of in a package that broke did not pass.
func (o *outcomes) ofTest(m mention, test string) string {
	ended := o.ended[m.dir]
	if result := ofSubtests(ended, test, m.about.text); result != resultNone {
		return result
	}
	if result, ok := ended[test]; ok {
		return result
	}
	if ended[""] == resultFailed {
		return resultFailed
	}
	return resultNotRun
}

// ofSubtests looks for the subtest of that name, then for those whose names only begin with the text.
func ofSubtests(ended map[string]string, test, text string) string {
	if text == "" {
		return resultNone
	}
	name := subtest(text)
	begin, _, _ := strings.Cut(name, "%")
	var exact, prefixed []string
	for full, result := range ended {
		inner, ok := strings.CutPrefix(full, test+"/")
		switch inner = "/" + inner; {
		case !ok:
		case strings.HasSuffix(inner, "/"+name), strings.Contains(inner, "/"+name+"#"):
			exact = append(exact, result)
		case begin != "" && strings.Contains(inner, "/"+begin):
			prefixed = append(prefixed, result)
		}
	}
	if len(exact) > 0 {
		return worst(exact)
	}
	return worst(prefixed)
}

// subtest is the name that testing gives to a subtest of this text.
func subtest(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte('_')
		case !strconv.IsPrint(r):
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func worst(results []string) string {
	for _, result := range []string{resultFailed, resultPassed, resultNotRun} {
		if slices.Contains(results, result) {
			return result
		}
	}
	return resultNone
}

// failedAside are packages with a failure that no case has shown: a leak after the last test, a test that shares a name.
func (o *outcomes) failedAside(rows []row) []string {
	shown := map[string]bool{}
	for _, r := range rows {
		for _, p := range r.places {
			if p.result == resultFailed {
				shown[p.dir] = true
			}
		}
	}
	var others []string
	for dir, ended := range o.ended {
		if ended[""] == resultFailed && !shown[dir] {
			others = append(others, dir)
		}
	}
	slices.Sort(others)
	return others
}
