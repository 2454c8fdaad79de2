// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPick(t *testing.T) {
	tests := []struct {
		name    string
		in      []string
		want    []string
		wantErr bool
	}{
		{name: "a step", in: []string{"arch"}, want: []string{"arch"}},
		{name: "a group becomes its steps, in order", in: []string{"test"}, want: []string{"verify-light", "unit", "fuzz", "sanity", "image", "e2e", "faults-short", "pods"}},
		{name: "steps keep their order", in: []string{"vet", "fmt"}, want: []string{"vet", "fmt"}},
		{name: "nothing is an error", wantErr: true},
		{name: "an unknown step is an error and does not pass", in: []string{"arch", "unti"}, wantErr: true},
		{name: "the demo has the terminal for itself", in: []string{"demo", "arch"}, wantErr: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			picked, err := pick(tt.in)
			if (err != nil) != tt.wantErr {
				t.Fatalf("pick(%q): error %v, want error: %t", tt.in, err, tt.wantErr)
			}
			var got []string
			for _, s := range picked {
				got = append(got, s.name)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("pick(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestEveryGroupNamesStepsThatExist(t *testing.T) {
	for group := range groups {
		if _, err := pick([]string{group}); err != nil {
			t.Errorf("group %q: %v", group, err)
		}
	}
}

func TestTally(t *testing.T) {
	const (
		pass  = `{"Action":"pass","Package":"p","Test":"TestA"}`
		skip  = `{"Action":"skip","Package":"p","Test":"TestB"}`
		says  = `{"Action":"output","Package":"p","Test":"TestC","Output":"c.go:1: why\n"}`
		fail  = `{"Action":"fail","Package":"p","Test":"TestC"}`
		panic = `{"Action":"output","Package":"p","Test":"TestD","Output":"panic: at the disco\n"}`
		bad   = `{"Action":"fail","Package":"p"}`
		okay  = `{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`
		good  = `{"Action":"pass","Package":"p"}`
	)
	tests := []struct {
		name                    string
		in                      []string
		passed, failed, skipped int
		shown, hidden           string
	}{
		{name: "tests are counted, go's own line is shown", in: []string{pass, skip, okay, good}, passed: 1, skipped: 1, shown: "ok  \tp\t0.1s"},
		{name: "a failed test is counted once and shown in full", in: []string{pass, says, fail, bad}, passed: 1, failed: 1, shown: "c.go:1: why"},
		{name: "the words of a test that passed are not shown", in: []string{says, `{"Action":"pass","Package":"p","Test":"TestC"}`, good}, passed: 1, hidden: "why"},
		{name: "a package that dies under a test has failed", in: []string{pass, panic, bad}, passed: 1, failed: 1, shown: "panic: at the disco"},
		{name: "figures are shown also of a test that passed", in: []string{`{"Action":"output","Package":"p","Test":"TestA","Output":"» 3 kills\n"}`, pass, good}, passed: 1, shown: "    3 kills"},
		{name: "compile errors are shown", in: []string{`{"Action":"build-output","ImportPath":"p","Output":"x.go:1: undefined\n"}`, bad}, failed: 1, shown: "undefined"},
		{name: "a line that is no event is shown as it is", in: []string{"go: something odd", pass}, passed: 1, shown: "go: something odd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			tally := newTally(&out)
			if err := tally.read(strings.NewReader(strings.Join(tt.in, "\n"))); err != nil {
				t.Fatal(err)
			}
			got := tally.sum
			if got.passed != tt.passed || got.failed != tt.failed || got.skipped != tt.skipped {
				t.Errorf("counted %d passed, %d failed, %d skipped, want %d, %d, %d", got.passed, got.failed, got.skipped, tt.passed, tt.failed, tt.skipped)
			}
			if !strings.Contains(out.String(), tt.shown) {
				t.Errorf("shown %q, which lacks %q", out.String(), tt.shown)
			}
			if tt.hidden != "" && strings.Contains(out.String(), tt.hidden) {
				t.Errorf("shown %q, which has %q in it", out.String(), tt.hidden)
			}
		})
	}
}

func TestUnlessSet(t *testing.T) {
	set := func(name string) (string, bool) { return "", name == "A" }
	if got := unlessSet(set, []string{"A=1", "B=2=3"}); !slices.Equal(got, []string{"B=2=3"}) {
		t.Errorf("got %q", got)
	}
}

func TestWithoutEndToEnd(t *testing.T) {
	got := withoutEndToEnd("m.example/x", []string{
		"m.example/x/pkg/a", "m.example/x/test/e2e", "m.example/x/test/e2e/proxy", "m.example/x/test/e2etools", "m.example/x/test/controlplane",
	})
	want := []string{"m.example/x/pkg/a", "m.example/x/test/e2etools"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCheckAllGoesOnAfterAFailure(t *testing.T) {
	ran := 0
	count := func(err error) check {
		return func(context.Context, io.Writer) error { ran++; return err }
	}
	r := checkAll(count(nil), count(errors.New("broken")), count(nil))(t.Context(), io.Discard)
	if ran != 3 || r.passed != 2 || r.failed != 1 || r.note != "broken" {
		t.Errorf("ran %d, result %+v", ran, r)
	}
}

func TestReport(t *testing.T) {
	good := result{step: step{name: "unit"}, passed: 7, skipped: 2, took: time.Second}
	bad := result{step: step{name: "e2e"}, passed: 1, failed: 2, note: "first look at p TestC\nand more"}
	tests := []struct {
		name    string
		in      []result
		counts  string
		verdict string
	}{
		{name: "all is well", in: []result{good}, counts: "7 passed, 0 failed", verdict: "PASS: make test"},
		{name: "one step failed", in: []result{good, bad}, counts: "8 passed, 2 failed", verdict: `FAIL: make test, look above at what stands under "==> … e2e"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			report(&out, "make test", tt.in)
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			last, counts := lines[len(lines)-1], lines[len(lines)-2]
			if counts != tt.counts || !strings.HasPrefix(last, tt.verdict) {
				t.Errorf("ends with\n%s\n%s\nwant\n%s\n%s", counts, last, tt.counts, tt.verdict)
			}
		})
	}
}

func TestHeartbeatSpeaksOnlyInSilence(t *testing.T) {
	var out strings.Builder
	p := &pulse{out: &out, what: "go test", begin: time.Now(), last: time.Now()}
	p.say(p.last.Add(silence - time.Second))
	if out.Len() > 0 {
		t.Errorf("spoke too early: %q", out.String())
	}
	p.say(p.last.Add(silence))
	if !strings.Contains(out.String(), "go test") {
		t.Errorf("said %q after %s of silence", out.String(), silence)
	}
}

func TestReportOfARunWithoutSkips(t *testing.T) {
	var out strings.Builder
	report(&out, "make sanity", []result{{step: step{name: "sanity"}, passed: 1, took: time.Second}})
	if !strings.HasSuffix(out.String(), "\nPASS: make sanity, 1 step in 1s\n") {
		t.Errorf("ends with %q", out.String())
	}
}

func TestReportOfAnInterruption(t *testing.T) {
	unit, e2e := result{step: step{name: "unit"}, passed: 7}, result{step: step{name: "e2e"}, failed: 1}
	for want, results := range map[string][]result{
		"\nunit: 7 passed, 0 failed\ninterrupted: make test, in e2e, everything stopped\n": {unit, e2e},
		"\ninterrupted: make test, before its first step, everything stopped\n":            nil,
	} {
		var out strings.Builder
		if reportInterrupted(&out, "make test", results); out.String() != want {
			t.Errorf("said %q, want %q", out.String(), want)
		}
	}
}

func TestReadersWhoLeaveInterrupt(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	ctx, lost := context.WithCancel(t.Context())
	defer lost()
	out := newOutput(writer, lost)
	if _, err := out.Write([]byte("one")); err != nil || ctx.Err() != nil {
		t.Errorf("with a reader: %v, %v", err, ctx.Err())
	}
	reader.Close()
	if _, err := out.Write([]byte("two")); err != nil || ctx.Err() == nil {
		t.Errorf("without a reader: %v, %v", err, ctx.Err())
	}
}
