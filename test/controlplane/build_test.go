// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHashProgramSeesEveryInput(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hash := func(more ...string) string {
		t.Helper()
		sum, err := hashProgram(dir, more...)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	write("go.mod", "module m\n")
	write("go.sum", "")
	write("main.go", "package main\n")
	seen := map[string]string{hash("go1", "flags"): "the first"}
	if _, ok := seen[hash("go1", "flags")]; !ok {
		t.Fatal("the same sources have two hashes")
	}
	record := func(what, sum string) {
		t.Helper()
		if old, ok := seen[sum]; ok {
			t.Errorf("%s has the hash of %s", what, old)
		}
		seen[sum] = what
	}
	record("another Go", hash("go2", "flags"))
	record("other flags", hash("go1", "flag"))
	record("shifted flags", hash("go1f", "lags"))
	write("main.go", "package main // changed\n")
	record("a changed source", hash("go1", "flags"))
	write("more.go", "package main\n")
	record("one more source", hash("go1", "flags"))
	write("go.sum", "x\n")
	record("another go.sum", hash("go1", "flags"))
	write("go.mod", "module n\n")
	record("another go.mod", hash("go1", "flags"))
}

func TestBuildLinkerFlagsStampTheRequiredVersion(t *testing.T) {
	source, err := programDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version, flags, err := buildLinkerFlags(module)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(version, "v1.") {
		t.Errorf("got version %q", version)
	}
	for _, want := range []string{"-s -w", ".gitVersion=" + version, ".gitMajor=1", ".gitMinor=" + strings.Split(version, ".")[1]} {
		if !strings.Contains(flags, want) {
			t.Errorf("flags %q lack %q", flags, want)
		}
	}
	if _, _, err := buildLinkerFlags([]byte("module m\n")); err == nil {
		t.Error("a module without Kubernetes was accepted")
	}
}

func TestModuleRootPassesNestedModules(t *testing.T) {
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root := moduleRoot(working)
	if !isProgram(inModule(root)) {
		t.Fatalf("from %s: got root %q, which has no program", working, root)
	}
	if got := moduleRoot(inModule(root)); got != root {
		t.Errorf("from the program's own module: got %q, want %q", got, root)
	}
	if got := moduleRoot(t.TempDir()); got != "" {
		t.Errorf("outside of any module: got %q", got)
	}
}

func TestBinaryVariableMustNameAProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	t.Setenv(BinaryVariable, path)
	if _, err := Build(t.Context(), io.Discard); err == nil {
		t.Error("a missing program was accepted")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), io.Discard); err == nil {
		t.Error("a file that cannot be run was accepted")
	}
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := Build(t.Context(), io.Discard); err != nil || got != path {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestLockFileKeepsOthersOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	brief, cancel := context.WithTimeout(t.Context(), 3*pollInterval)
	defer cancel()
	var said bytes.Buffer
	if _, err := lockFile(brief, path, &said); err == nil {
		t.Fatal("two hold the lock")
	}
	if strings.Count(said.String(), "waiting") != 1 {
		t.Errorf("while waiting it said %q, want one line", said.String())
	}
	unlock()
	again, err := lockFile(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatalf("the lock was not lifted: %v", err)
	}
	again()
}

func TestProgressCountsPackages(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
	for _, chunk := range []string{"k8s.io/a", "pi/core/v1\nfmt\n", "# k8s.io/broken\n", "x.go:1:2: undefined: y\n"} {
		if _, err := p.Write([]byte(chunk)); err != nil {
			t.Fatal(err)
		}
	}
	p.report()
	if !strings.HasPrefix(out.String(), "2 packages compiled, ") {
		t.Errorf("got %q", out.String())
	}
	if !strings.HasSuffix(p.tail(), "undefined: y") {
		t.Errorf("the tail is %q", p.tail())
	}
}

// A build that fails must leave the compiler's words in the error, and nothing in the cache.
func TestFailedBuildLeavesNothing(t *testing.T) {
	source, cache := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module broken\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() { undefinedThing() }\n",
	} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plan := buildPlan{source: source, kubernetes: "v0", ldflags: "-s", target: filepath.Join(cache, "program")}
	err := plan.build(t.Context(), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "undefinedThing") {
		t.Errorf("got error %v", err)
	}
	left, err := os.ReadDir(cache)
	if err != nil || len(left) != 0 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}

func TestBuildCanBeCancelled(t *testing.T) {
	source, err := programDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cache := t.TempDir()
	plan := buildPlan{source: source, kubernetes: "v0", ldflags: "-s", target: filepath.Join(cache, "program")}
	began := time.Now()
	if err := plan.build(ctx, io.Discard); err == nil {
		t.Error("a cancelled build succeeded")
	}
	t.Logf("gave up after %s", time.Since(began))
	if left, err := os.ReadDir(cache); err != nil || len(left) != 0 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}
