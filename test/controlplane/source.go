// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

const modulePath = "github.com/csi-tandem/csi-tandem"

var moduleLine = regexp.MustCompile(`(?m)^module\s+` + regexp.QuoteMeta(modulePath) + `\s*$`)

// programDir finds the program's sources: beside this file as it was compiled, else in the checkout around the
// working folder, else where the go command finds this module. The first fails with -trimpath, the second in
// another module, the third without a module at all.
func programDir(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok {
		if dir := filepath.Join(filepath.Dir(file), "program"); filepath.IsAbs(dir) && isProgram(dir) {
			return dir, nil
		}
	}
	working, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if root := moduleRoot(working); root != "" {
		if dir := inModule(root); isProgram(dir) {
			return dir, nil
		}
	}
	answer, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err == nil {
		if dir := inModule(strings.TrimSpace(string(answer))); isProgram(dir) {
			return dir, nil
		}
	}
	return "", errors.Join(errors.New("finding the control plane's sources: neither beside this package, nor above "+
		working+", nor through the go command; set "+BinaryVariable+" to a program built from them"), err)
}

func inModule(root string) string { return filepath.Join(root, "test", "controlplane", "program") }

func isProgram(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "main.go"))
	return err == nil
}

// moduleRoot walks up to the folder of this module, passing those of nested ones.
func moduleRoot(dir string) string {
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && moduleLine.Match(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))) {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}
