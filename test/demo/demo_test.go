// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
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
		{"somebody pressed Ctrl-C", ending{err: step, began: time.Now(), interrupted: true}, 1, `DEMO FAILED: interrupted at step 1.2 "A claim" (after 0s)`, "two"},
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
		if d := newDemo(os.Stdout); d.keep != want {
			t.Errorf("KEEP=%q: keep is %t", value, d.keep)
		}
	}
}
