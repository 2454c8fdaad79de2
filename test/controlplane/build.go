// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// BinaryVariable names an environment variable with the path of a program to use instead of building one.
const BinaryVariable = "CSI_TANDEM_CONTROLPLANE"

// goGrace is for go to end when it is interrupted.
const goGrace = 10 * time.Second

const componentVersion = "k8s.io/component-base/version"

// Build returns the path of the control plane program, building it if this machine has none that was made from the
// same sources by the same Go. Processes that need it at the same time wait for the one that builds.
func Build(ctx context.Context, out io.Writer) (string, error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		return checkBinary(path)
	}
	source, err := programDir(ctx)
	if err != nil {
		return "", err
	}
	plan, err := newBuildPlan(ctx, source)
	if err != nil {
		return "", err
	}
	if isBuilt(plan.target) {
		return plan.target, nil
	}
	if err := os.MkdirAll(filepath.Dir(plan.target), 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := lockFile(ctx, plan.target+".lock", out)
	if err != nil {
		return "", err
	}
	defer unlock()
	// Whoever held the lock before may have built it.
	if isBuilt(plan.target) {
		return plan.target, nil
	}
	if err := plan.build(ctx, out); err != nil {
		return "", fmt.Errorf("building the control plane program: %w", err)
	}
	return plan.target, nil
}

func checkBinary(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding the program named by %s: %w", BinaryVariable, err)
	}
	if !isBuilt(absolute) {
		return "", fmt.Errorf("%s names %s, which is not an executable file", BinaryVariable, absolute)
	}
	return absolute, nil
}

func isBuilt(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o100 != 0
}

// buildPlan is all that the program depends on, and where it goes.
type buildPlan struct {
	source     string
	kubernetes string
	ldflags    string
	target     string
}

func newBuildPlan(ctx context.Context, source string) (buildPlan, error) {
	module, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return buildPlan{}, fmt.Errorf("reading the program's module: %w", err)
	}
	plan := buildPlan{source: source}
	if plan.kubernetes, plan.ldflags, err = buildLinkerFlags(module); err != nil {
		return buildPlan{}, err
	}
	toolchain, err := exec.CommandContext(ctx, "go", "-C", source, "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return buildPlan{}, fmt.Errorf("asking go for its version: %w", err)
	}
	sum, err := hashProgram(source, string(toolchain), plan.ldflags)
	if err != nil {
		return buildPlan{}, fmt.Errorf("hashing the program's sources: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return buildPlan{}, fmt.Errorf("finding the cache folder: %w", err)
	}
	plan.target = filepath.Join(cache, "csi-tandem", "controlplane-"+sum)
	return plan, nil
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes\s+(v(\d+)\.(\d+)\.\S+)`)

// buildLinkerFlags stamps the version that go.mod asks for: clients parse what the server says it is, and the parts
// derive their feature gates from it.
func buildLinkerFlags(module []byte) (version, flags string, err error) {
	match := kubernetesVersion.FindSubmatch(module)
	if match == nil {
		return "", "", errors.New("the program's go.mod does not require k8s.io/kubernetes")
	}
	stamps := []struct{ name, value string }{
		{"gitVersion", string(match[1])},
		{"gitMajor", string(match[2])},
		{"gitMinor", string(match[3])},
		{"gitTreeState", "clean"},
	}
	var text strings.Builder
	text.WriteString("-s -w")
	for _, stamp := range stamps {
		fmt.Fprintf(&text, " -X %s.%s=%s", componentVersion, stamp.name, stamp.value)
	}
	return string(match[1]), text.String(), nil
}

// hashProgram covers everything that can change the binary: the module files pin all dependencies.
func hashProgram(source string, more ...string) (string, error) {
	files, err := filepath.Glob(filepath.Join(source, "*.go"))
	if err != nil {
		return "", err
	}
	files = append(files, filepath.Join(source, "go.mod"), filepath.Join(source, "go.sum"))
	sum := sha256.New()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		// Lengths keep two different sets of files from having the same bytes in a row.
		fmt.Fprintf(sum, "%s %d\n", filepath.Base(file), len(data))
		sum.Write(data)
	}
	for _, text := range more {
		fmt.Fprintf(sum, "%d\n%s", len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// build writes beside the target and renames, so that nobody ever starts half a program.
func (p buildPlan) build(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "building a Kubernetes %s control plane (etcd, API server, controller manager, scheduler) into %s\n"+
		"this happens once; it takes up to ten minutes when nothing has been compiled yet\n", p.kubernetes, p.target)
	building := p.target + ".building-"
	// Whoever builds has the lock: what is there is from a build that was killed.
	killed, err := filepath.Glob(building + "*")
	for _, path := range killed {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(p.target), filepath.Base(building))
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)

	began := time.Now()
	binary := filepath.Join(temporary, "controlplane")
	cmd := exec.Command("go", "build", "-C", p.source, "-v", "-trimpath", "-buildvcs=false",
		"-ldflags", p.ldflags, "-o", binary, ".")
	// Settings meant for the caller's own module would not fit this one.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOTMPDIR="+temporary)
	report := newProgress(out)
	cmd.Stdout, cmd.Stderr = report, report
	child, err := startProcess(cmd)
	if err != nil {
		return fmt.Errorf("starting go: %w", err)
	}
	ended := report.run(child.done)
	select {
	case <-child.done:
	case <-ctx.Done():
		// It waits for its compilers when it is interrupted, and not when it is killed.
		child.end(syscall.SIGINT, goGrace)
		<-ended
		return context.Cause(ctx)
	}
	<-ended
	if child.err != nil {
		return fmt.Errorf("%w:\n%s", child.err, report.tail())
	}
	if err := os.Rename(binary, p.target); err != nil {
		return err
	}
	fmt.Fprintf(out, "built the control plane in %s\n", time.Since(began).Round(time.Second))
	return nil
}

// lockFile waits for an advisory lock, which the kernel lifts when its holder dies. The file stays: removing it
// would let two others hold locks on two files of the same name.
func lockFile(ctx context.Context, path string, out io.Writer) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the build lock: %w", err)
	}
	said := false
	err = poll(ctx, func(context.Context) (bool, error) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			if !said {
				said = true
				fmt.Fprintln(out, "another process is building the control plane, waiting for it")
			}
			return false, err
		}
		return true, err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}
