// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/csi-tandem/csi-tandem/test/story"
)

// The last line and the exit code are what scripts look at, and they have to agree.
func TestVerdict(t *testing.T) {
	step := &story.StepError{Step: `1.2 "A claim"`, Err: errors.New("one\ntwo")}
	tests := []struct {
		name string
		in   ending
		code int
		last string
		says string
	}{
		{"passed", ending{verdict: "24 steps", began: time.Now()}, 0, "DEMO PASSED: 24 steps, in 0s", ""},
		{"a step failed", ending{err: step, began: time.Now()}, 1, `DEMO FAILED: step 1.2 "A claim" (after 0s)`, "one\n  two"},
		{"a step failed, and then the end of it", ending{err: errors.Join(step, errors.New("three")), began: time.Now()}, 1, `DEMO FAILED: step 1.2 "A claim" (after 0s)`, "three"},
		{"somebody pressed Ctrl-C", ending{err: step, began: time.Now(), interrupted: true}, 130, `interrupted at step 1.2 "A claim", everything stopped (after 0s)`, ""},
		{"nothing began", ending{err: errors.New("no room"), began: time.Now()}, 1, "DEMO FAILED: setting up (after 0s)", "no room"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file, err := os.Create(filepath.Join(t.TempDir(), "out"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			d := &demo{out: file}
			if code := d.speak(tt.in); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			said, err := os.ReadFile(file.Name())
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(said)), "\n")
			if lines[len(lines)-1] != tt.last || !strings.Contains(string(said), tt.says) {
				t.Errorf("said %q, want %q in it and %q last", said, tt.says, tt.last)
			}
		})
	}
}

func TestKeepIsSwitchedOffByZero(t *testing.T) {
	for value, want := range map[string]bool{"": false, "0": false, "1": true, "yes": true} {
		t.Setenv("KEEP", value)
		if d := newDemo(newOutput(os.Stdout, func() {})); d.keep != want {
			t.Errorf("KEEP=%q: keep is %t", value, d.keep)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
	}{{[]string{"--help"}, 0}, {[]string{"-h"}, 0}, {[]string{"DRIVER=unix:///x"}, 2}, {[]string{"--keep"}, 2}} {
		if code := start(tt.args); code != tt.code {
			t.Errorf("%q: exit code %d, want %d", tt.args, code, tt.code)
		}
	}
}

// A misspelt variable would be found only after minutes of building.
func TestVariablesAreCheckedFirst(t *testing.T) {
	for _, tt := range []struct{ driver, chaos, nodes, says string }{
		{"", "", "", ""},
		{"", "both", "", ""},
		{"", "all", "", "CHAOS"},
		{"", "", "real", ""},
		{"", "", "simulated", ""},
		{"", "", "true", `NODES is real or simulated, not "true"`},
		{"unix:///x", "", "real", "leave out one of the two"},
		{"run/csi.sock", "", "", "unix:///absolute"},
		{"tcp://127.0.0.1:1", "", "", "unix:///absolute"},
	} {
		d := &demo{out: io.Discard, driver: tt.driver, chaos: tt.chaos, nodes: tt.nodes}
		err := d.check(t.Context())
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("DRIVER=%s CHAOS=%s NODES=%s: %v", tt.driver, tt.chaos, tt.nodes, err)
		}
	}
}

func TestReadersWhoLeaveInterrupt(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	left := 0
	out := newOutput(writer, func() { left++ })
	if n, err := out.Write([]byte("one")); n != 3 || err != nil || left != 0 {
		t.Errorf("with a reader: %d bytes, %v, left %d times", n, err, left)
	}
	reader.Close()
	for range 2 {
		if n, err := out.Write([]byte("two")); n != 3 || err != nil || left != 1 {
			t.Errorf("without a reader: %d bytes, %v, left %d times", n, err, left)
		}
	}
}
