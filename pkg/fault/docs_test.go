// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var update = flag.Bool("update", false, "write the table into the guide for vendors instead of comparing it")

const (
	guide      = "../../docs/vendor.md"
	tableBegin = "<!-- fault -->\n"
	tableEnd   = "\n<!-- /fault -->"
)

// conclusions are what the rooms make of a class, in words.
var conclusions = map[Operation]map[Class]string{
	CreateVolume: {
		Uncertain: "open: the very same request again", Final: "nothing was made: told, and asked anew",
		Exhausted: "no room: another node, if the scheduler chose this one", Infeasible: "hopeless as it stands: told, and asked again when claim or class change, or after `--retry-interval-max`",
	},
	CreateSnapshot: {
		Uncertain: "open: the very same request again", Final: "nothing was made: told, and asked again later", Infeasible: "nothing was made: told, and asked again later",
	},
}

// buildTable is the table of codes as drivers' authors read it.
func buildTable() string {
	var b strings.Builder
	b.WriteString("| code | CreateVolume | CreateSnapshot | DeleteVolume, DeleteSnapshot | settles an earlier call that is open | calls at once |\n|---|---|---|---|---|---|\n")
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		failed := func(op Operation) *Error { return New(op, status.Error(code, "")) }
		deletion := "tried again"
		if IsNotFound(failed(DeleteVolume)) && IsNotFound(failed(DeleteSnapshot)) {
			deletion = "done"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", code,
			conclusions[CreateVolume][Classify(CreateVolume, code)], conclusions[CreateSnapshot][Classify(CreateSnapshot, code)],
			deletion, settling(failed(CreateVolume), failed(CreateSnapshot)), bearing(failed(CreateVolume), failed(CreateSnapshot)))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// settling says for which calls an answer also tells what became of the ones before it.
func settling(volume, snapshot *Error) string {
	switch forVolume, forSnapshot := !ProvesNothing(volume), !ProvesNothing(snapshot); {
	case forVolume && forSnapshot:
		return "yes"
	case forSnapshot:
		return "for CreateSnapshot only"
	case forVolume:
		return "for CreateVolume only"
	}
	return "no"
}

// bearing says what an answer means for how many calls the driver gets.
func bearing(volume, snapshot *Error) string {
	words := map[Pressure]string{Answered: "", Late: "fewer, when it happens again and again", Busy: "fewer, for a call that is new", Overloaded: "fewer"}
	forVolume, forSnapshot := PressureOf(CreateVolume, volume), PressureOf(CreateSnapshot, snapshot)
	if forVolume != forSnapshot {
		return words[forSnapshot] + ", except for CreateVolume"
	}
	return words[forVolume]
}

// TestGuideSaysWhatHolds: the table in the guide for vendors is that of the code.
func TestGuideSaysWhatHolds(t *testing.T) {
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	found, after, closed := strings.Cut(rest, tableEnd)
	if !ok || !closed {
		t.Fatalf("%s has no %q", guide, tableBegin)
	}
	want := buildTable()
	if *update {
		if err := os.WriteFile(guide, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if found != want {
		t.Errorf("the table is not that of the code: go test ./pkg/fault -run TestGuide -update\nwant\n%s", want)
	}
}
