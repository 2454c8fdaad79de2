// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/csi-tandem/csi-tandem/test/compile"
)

// Program is one of the programs that a cast is made of.
type Program string

// The programs.
const (
	Driver      Program = "driver"
	Provisioner Program = "provisioner"
	Snapshotter Program = "snapshotter"
)

// ProgramsVariable names an environment variable with a folder of programs to use instead of building them: to try a
// release, or one built with the race detector.
const ProgramsVariable = "CSI_TANDEM_PROGRAMS"

const module = "module github.com/csi-tandem/csi-tandem"

// findRoot walks up from the working folder to the checkout.
func findRoot() (string, error) {
	working, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for dir := working; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			for line := range strings.Lines(string(content)) {
				if strings.TrimSpace(line) == module {
					return dir, nil
				}
			}
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the checkout: %s is not inside one", working)
		}
	}
}

// build compiles the three programs into a folder of their own, so that nobody else's build can replace one that runs.
func build(ctx context.Context, root, dir string, out io.Writer) (map[Program]string, error) {
	if given := os.Getenv(ProgramsVariable); given != "" {
		return find(given)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for programs: %w", err)
	}
	began := time.Now()
	version := describe(ctx, root)
	fmt.Fprintf(out, "building the provisioner, the snapshotter and the example driver, version %s\n", version)
	programs := map[Program]string{}
	for _, target := range []struct {
		program Program
		source  string
	}{{Provisioner, "cmd/provisioner"}, {Snapshotter, "cmd/snapshotter"}, {Driver, "examples/driver"}} {
		path := filepath.Join(dir, string(target.program))
		err := compile.Run(ctx, compile.Job{
			// Each from its own folder: that works whichever module it belongs to.
			Name: "the " + string(target.program), Source: filepath.Join(root, filepath.FromSlash(target.source)), Work: dir,
			Args: []string{"-ldflags", "-s -w -X main.version=" + version, "-o", path, "."}, Env: []string{"CGO_ENABLED=0"}, Out: out,
		})
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", target.source, err)
		}
		programs[target.program] = path
	}
	fmt.Fprintf(out, "built them in %.1fs\n", time.Since(began).Seconds())
	return programs, nil
}

// find takes programs that somebody else has built.
func find(dir string) (map[Program]string, error) {
	programs := map[Program]string{}
	for _, program := range []Program{Provisioner, Snapshotter, Driver} {
		path, err := filepath.Abs(filepath.Join(dir, string(program)))
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return nil, fmt.Errorf("finding the %s in %s, which %s names: %w", program, dir, ProgramsVariable, err)
		}
		programs[program] = path
	}
	return programs, nil
}

// describe names the checkout as make does.
func describe(ctx context.Context, root string) string {
	cmd := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty")
	cmd.Dir = root
	said, err := cmd.Output()
	if version := strings.TrimSpace(string(said)); err == nil && version != "" {
		return version
	}
	return "unknown"
}
