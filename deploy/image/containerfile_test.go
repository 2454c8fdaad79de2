// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// instructions are the lines of a stage of the Containerfile, with what was continued on the next line.
func instructions(t *testing.T) map[string][]string {
	t.Helper()
	file, err := os.Open("../../Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stages, stage, line := map[string][]string{}, "", ""
	for lines := bufio.NewScanner(file); lines.Scan(); {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if part, ok := strings.CutSuffix(text, "\\"); ok {
			line += part
			continue
		}
		line += text
		if fields := strings.Fields(line); fields[0] == "FROM" {
			stage = fields[len(fields)-1]
		}
		stages[stage] = append(stages[stage], line)
		line = ""
	}
	return stages
}

// TestContainerfileAgrees: both ways of building give the same images.
func TestContainerfileAgrees(t *testing.T) {
	stages := instructions(t)
	for _, i := range images() {
		program := strings.TrimPrefix(i.program, "./cmd/")
		want := []string{
			"FROM scratch AS " + i.name, fmt.Sprintf("COPY --from=build --chmod=0555 /out/%s /%s", program, i.name),
			"USER " + user, "WORKDIR /", fmt.Sprintf("ENTRYPOINT [%q]", "/"+i.name),
		}
		got := slices.DeleteFunc(slices.Clone(stages[i.name]), func(line string) bool { return strings.HasPrefix(line, "LABEL ") })
		if !slices.Equal(got, want) {
			t.Errorf("stage %s has\n%s\nwant\n%s", i.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if built := strings.Join(stages["build"], "\n"); !strings.Contains(built, "CGO_ENABLED=0") || !strings.Contains(built, `-trimpath -ldflags "`+ldflags("$VERSION")+`"`) {
		t.Errorf("the build stage compiles otherwise:\n%s", built)
	}
	if len(stages) != len(images())+1 {
		t.Errorf("%d stages", len(stages))
	}
}

// TestMakefileAgrees: what runs by hand and what runs in a container is built alike.
func TestMakefileAgrees(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "LDFLAGS := "+ldflags("$(VERSION)")+"\n") {
		t.Errorf("the Makefile does not have %s", ldflags("$(VERSION)"))
	}
}
