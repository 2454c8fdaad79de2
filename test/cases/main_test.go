// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// module is a small tree whose tests are really run.
func module(t *testing.T) string {
	t.Helper()
	head := "package p\n\nimport \"testing\"\n\n"
	return plant(t, map[string]string{
		"go.mod": "module m.example/x\n\ngo 1.21\n",
		"pkg/provision/a_test.go": head + `func TestRows(t *testing.T) {
	for _, name := range []string{"T01 good", "T02 bad", "T03 later"} {
		t.Run(name, func(t *testing.T) {
			switch name[4:] {
			case "bad":
				t.Error("it is wrong")
			case "later":
				t.Skip()
			}
		})
	}
}
func TestUnnamed(t *testing.T) { t.Error("names no case") }
`,
		"pkg/controller/claim/b_test.go": head + "func TestT01Room(t *testing.T) {}\n",
		"pkg/broken/c_test.go":           head + "func TestS1(t *testing.T) { undefined() }\n",
		"test/e2e/d_test.go": head + `import "os"
func TestB001(t *testing.T) {
	if os.Getenv("CSI_TANDEM_E2E") != "1" {
		t.Error("run without being asked for")
	}
}
func TestB003(t *testing.T) {}
`,
	})
}

func play(t *testing.T, args ...string) (code int, out, progress string) {
	t.Helper()
	var o, p strings.Builder
	code = run(t.Context(), args, &o, &p)
	return code, o.String(), p.String()
}

// line finds the line of a case, and squeezes its columns.
func line(out, id string) string {
	for _, l := range strings.Split(out, "\n") {
		if fields := strings.Fields(l); len(fields) > 1 && fields[0] == id {
			return strings.Join(fields, " ")
		}
	}
	return ""
}

func wantLine(t *testing.T, out, id, end string) {
	t.Helper()
	if got := line(out, id); !strings.HasSuffix(got, end) {
		t.Errorf("got line %q, want it to end in %q", got, end)
	}
}

func TestRun(t *testing.T) {
	t.Setenv("CSI_TANDEM_E2E", "")
	code, out, progress := play(t, "-root", module(t), "-run", "T01,T02,T03,T04,S1,S2,B001")
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	wantLine(t, out, "T01", "passed room pkg/controller/claim/b_test.go:5 TestT01Room")
	if !strings.Contains(out, "passed       table  pkg/provision/a_test.go:6 TestRows/T01 good\n") {
		t.Errorf("the second place of T01 has no line:\n%s", out)
	}
	wantLine(t, out, "T02", "failed table pkg/provision/a_test.go:6 TestRows/T02 bad")
	wantLine(t, out, "T03", "not run table pkg/provision/a_test.go:6 TestRows/T03 later")
	wantLine(t, out, "T04", "no test yet")
	wantLine(t, out, "S1", "failed table pkg/broken/c_test.go:5 TestS1")
	wantLine(t, out, "B001", "not run e2e test/e2e/d_test.go:6 TestB001")
	wantLine(t, out, "T", "4 cases: 1 passed, 1 failed, 1 not run, 1 without a test, 0 n/a")
	if !strings.HasSuffix(out, "FAIL: failed: T02 S1\n") {
		t.Errorf("the verdict is not the last line, or not this one:\n%s", out)
	}
	for _, want := range []string{"it is wrong", "undefined: undefined", "not run: test/e2e"} {
		if !strings.Contains(progress, want) {
			t.Errorf("%q is not told:\n%s", want, progress)
		}
	}
	if strings.Contains(progress, "names no case") {
		t.Error("a test that names no case was run")
	}
}

func TestRunEndToEnd(t *testing.T) {
	t.Setenv("CSI_TANDEM_E2E", "1")
	code, out, progress := play(t, "-root", module(t), "-run", "B001")
	if code != 0 {
		t.Errorf("exit code %d:\n%s", code, progress)
	}
	wantLine(t, out, "B001", "passed e2e test/e2e/d_test.go:6 TestB001")
	if line(out, "B003") != "" {
		t.Error("B003 was not asked for")
	}
}

func TestComplete(t *testing.T) {
	root := module(t)
	for _, c := range []struct {
		name, complete, selected string
		code                     int
		end                      string
	}{
		{"nothing has to be complete", "", "T01,T04", 0, ""},
		{"it is", "T", "T01,T02", 0, ""},
		{"it is not", "S,T", "T01,T04,S2,B005", exitFailed, "FAIL: without a test: T04 S2\n"},
		{"no such group", "X", "", exitUsage, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, _ := play(t, "-root", root, "-list", "-complete", c.complete, "-run", c.selected)
			if code != c.code || !strings.HasSuffix(out, c.end) {
				t.Errorf("exit code %d:\n%s", code, out)
			}
			if c.code == 0 {
				wantLine(t, out, "T01", "not run room pkg/controller/claim/b_test.go:5 TestT01Room")
			}
		})
	}
}

// A case that does not apply is no gap; one that is tested nevertheless shows its test.
func TestNotApplicable(t *testing.T) {
	reason := "the interface has no such call"
	cases := []listed{{id: "T01", group: "T", says: "a", reason: reason}, {id: "T02", group: "T", says: "b", reason: reason}}
	places := map[string][]mention{"T02": {{ref: ref{"T", 2}, dir: "pkg/a", file: "pkg/a/a_test.go", line: 1, tests: []string{"TestA"}}}}
	rows := judge(cases, places, &outcomes{})
	if rows[0].result != resultInvalid || rows[1].result != resultNotRun {
		t.Errorf("got %s and %s", rows[0].result, rows[1].result)
	}
	if err := judgeAll(rows, &outcomes{}, groups[:1]); err != nil {
		t.Errorf("got %v", err)
	}
	var out strings.Builder
	writeTable(&out, rows)
	wantLine(t, out.String(), "T01", "n/a "+reason)
}

func TestUsage(t *testing.T) {
	root := module(t)
	for name, args := range map[string][]string{
		"unknown id":    {"-run", "T999"},
		"unknown flag":  {"-what"},
		"bare argument": {"T35"},
		"no tree":       {"-root", root + "/missing"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, progress := play(t, append([]string{"-list", "-root", root}, args...)...)
			if code != exitUsage || out != "" || progress == "" {
				t.Errorf("exit code %d, out %q, told %q", code, out, progress)
			}
		})
	}
	if code, _, progress := play(t, "-h"); code != 0 || !strings.Contains(progress, "-complete groups") {
		t.Errorf("help: exit code %d:\n%s", code, progress)
	}
}
