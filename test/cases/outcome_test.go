// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"
)

const events = `{"Action":"run","Package":"m/x/pkg/a","Test":"TestA"}
{"Action":"output","Package":"m/x/pkg/a","Test":"TestA/T35_in_order","Output":"a_test.go:7: wrong\n"}
{"Action":"fail","Package":"m/x/pkg/a","Test":"TestA/T35_in_order"}
{"Action":"pass","Package":"m/x/pkg/a","Test":"TestA/T36.1_not_there"}
{"Action":"pass","Package":"m/x/pkg/a","Test":"TestA/deep/T37_other"}
{"Action":"skip","Package":"m/x/pkg/a","Test":"TestA/T38_later"}
{"Action":"pass","Package":"m/x/pkg/a","Test":"TestA/T48_up_to_down"}
{"Action":"fail","Package":"m/x/pkg/a","Test":"TestA/T48_down_to_up"}
{"Action":"pass","Package":"m/x/pkg/a","Test":"TestA/twin"}
{"Action":"fail","Package":"m/x/pkg/a","Test":"TestA/twin#01"}
{"Action":"fail","Package":"m/x/pkg/a","Test":"TestA"}
{"Action":"pass","Package":"m/x/pkg/a","Test":"TestB"}
not an event
{"Action":"output","Package":"m/x/pkg/a","Test":"TestC","Output":"panic: here\n"}
{"Action":"fail","Package":"m/x/pkg/a"}
{"Action":"pass","Package":"m/x","Test":"TestRoot"}
{"Action":"pass","Package":"m/x"}
`

func readEvents(t *testing.T, progress io.Writer) *outcomes {
	t.Helper()
	o := &outcomes{module: "m/x", ended: map[string]map[string]string{}, kept: map[string][]string{}}
	if err := o.read(strings.NewReader(events), progress); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOutcomes(t *testing.T) {
	o := readEvents(t, io.Discard)
	for _, c := range []struct{ name, dir, tests, text, want string }{
		{"its row failed", "pkg/a", "TestA", "T35 in order", resultFailed},
		{"its row passed in a test that failed", "pkg/a", "TestA", "T36.1 not there", resultPassed},
		{"row of a row", "pkg/a", "TestA", "T37 other", resultPassed},
		{"its row was skipped", "pkg/a", "TestA", "T38 later", resultNotRun},
		{"name put together", "pkg/a", "TestA", "T48 ", resultFailed},
		{"name put together by format", "pkg/a", "TestA", "T48 %s to down", resultFailed},
		{"two rows of one name", "pkg/a", "TestA", "twin", resultFailed},
		{"no such row: the whole test", "pkg/a", "TestA", "T99 said when it fails", resultFailed},
		{"no such row, and all is well", "pkg/a", "TestB", "T99 said when it fails", resultPassed},
		{"a whole test", "pkg/a", "TestB", "", resultPassed},
		{"one of two tests failed", "pkg/a", "TestB TestA", "", resultFailed},
		{"one of two tests ran", ".", "TestRoot TestOther", "", resultPassed},
		{"never heard of in a broken package", "pkg/a", "TestC", "", resultFailed},
		{"never heard of in a sound package", ".", "TestC", "", resultNotRun},
		{"a package that was not run", "pkg/b", "TestC", "T35 in order", resultNotRun},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mention{dir: c.dir, tests: strings.Fields(c.tests), about: subject{text: c.text}}
			if got := o.of(m); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// What a failed test wrote is shown, also when its process ended in the middle.
func TestOutcomesShowFailures(t *testing.T) {
	var progress strings.Builder
	readEvents(t, &progress)
	for _, want := range []string{"a_test.go:7: wrong\n", "not an event\n", "panic: here\n"} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, progress.String())
		}
	}
}

func TestFailedAside(t *testing.T) {
	o := readEvents(t, io.Discard)
	if got := o.failedAside(nil); len(got) != 1 || got[0] != "pkg/a" {
		t.Errorf("got %v, want the package that no case speaks for", got)
	}
	shown := row{places: []place{{mention: mention{dir: "pkg/a"}, result: resultFailed}}}
	if got := o.failedAside([]row{shown}); len(got) > 0 {
		t.Errorf("got %v, though a case has shown it", got)
	}
}
