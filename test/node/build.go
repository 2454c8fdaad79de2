// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/csi-tandem/csi-tandem/test/compile"
)

// recipe is how one module is compiled. The modules are apart because what they depend on cannot be had in one.
type recipe struct {
	module string
	// makes are the programs, packages where they are in the module's dependencies.
	makes    []string
	packages []string
	flags    []string
	cgo      string
	says     string
}

// building begins the names of folders that are worked in. Whoever has the lock has them all.
const building = "building-"

const kubeletPackage = "k8s.io/kubernetes/cmd/kubelet"

func recipes() []recipe {
	return []recipe{
		{module: "kubelet", makes: []string{"kubelet"}, packages: []string{kubeletPackage}, cgo: "0", says: "a minute when the control plane is compiled"},
		{module: "containerd", makes: []string{"containerd", "containerd-shim-runc-v2", "ctr"}, packages: []string{"tool"}, flags: []string{"-tags", "no_btrfs,no_devmapper,no_zfs"}, cgo: "0", says: "two or three minutes"},
		{module: "runc", makes: []string{"runc"}, packages: []string{"tool"}, flags: []string{"-tags", "seccomp"}, cgo: "1", says: "half a minute"},
	}
}

// tools are the programs that have been built.
type tools struct {
	dir     string
	machine string
}

func (t tools) path(name string) string { return filepath.Join(t.dir, name) }

// sources is the folder of this package.
func sources() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	dir := filepath.Dir(file)
	if _, err := os.Stat(filepath.Join(dir, "program", "kubelet", "go.mod")); ok && err == nil {
		return dir, nil
	}
	answer, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/csi-tandem/csi-tandem/test/node").Output()
	if err != nil {
		return "", fmt.Errorf("finding the sources of the nodes: %w", err)
	}
	return strings.TrimSpace(string(answer)), nil
}

// target is where the programs go: a folder for each state of what they are made from.
func target() (source, dir string, err error) {
	if source, err = sources(); err != nil {
		return "", "", err
	}
	sum := sha256.New()
	version, err := exec.Command("go", "env", "GOVERSION", "GOARCH").Output()
	if err != nil {
		return "", "", fmt.Errorf("asking go for its version: %w", err)
	}
	sum.Write(version)
	err = filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		isMade := strings.HasPrefix(path, filepath.Join(source, "program")) || filepath.Dir(path) != source || entry.Name() == "build.go"
		if !isMade || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n", path[len(source):], len(content))
		sum.Write(content)
		return err
	})
	if err != nil {
		return "", "", fmt.Errorf("hashing the sources of the nodes: %w", err)
	}
	cache, err := cacheDir()
	return source, filepath.Join(cache, "node-"+hex.EncodeToString(sum.Sum(nil))[:16]), err
}

// cacheDir is where programs and marks are: by the path that the kernel tells of a process's program, without links in it.
func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w", err)
	}
	return resolved(filepath.Join(cache, "csi-tandem")), nil
}

// resolved has no links in it. What is not there yet stays as it is.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// isAllBuilt says whether a run would find every program.
func isAllBuilt() bool {
	_, dir, err := target()
	return err == nil && isBuilt(dir)
}

func isBuilt(dir string) bool {
	names := []string{"machine"}
	for _, r := range recipes() {
		names = append(names, r.makes...)
	}
	return !slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err != nil
	})
}

// Build compiles what has not been compiled yet. Processes that want it at the same time wait for the one that builds.
func Build(ctx context.Context, out io.Writer) error {
	_, err := build(ctx, out)
	return err
}

func build(ctx context.Context, out io.Writer) (tools, error) {
	source, dir, err := target()
	if err != nil {
		return tools{}, err
	}
	t := tools{dir: dir, machine: filepath.Join(dir, "machine")}
	if isBuilt(dir) {
		return t, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return tools{}, fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := lock(ctx, dir+".lock", out)
	if err != nil {
		return tools{}, err
	}
	defer unlock()
	if isBuilt(dir) {
		return t, nil
	}
	if err := removeAll(filepath.Join(dir, building+"*")); err != nil {
		return tools{}, fmt.Errorf("removing what a build that was killed left: %w", err)
	}
	fmt.Fprintf(out, "building what real nodes need into %s; this happens once\n", dir)
	machine := recipe{module: "machine", makes: []string{"machine"}, packages: []string{"."}, cgo: "0", says: "a second"}
	for _, r := range append(recipes(), machine) {
		folder := filepath.Join(source, "program", r.module)
		if r.module == machine.module {
			folder = filepath.Join(source, r.module)
		}
		if err := r.build(ctx, folder, dir, out); err != nil {
			return tools{}, fmt.Errorf("building %s: %w", strings.Join(r.makes, ", "), err)
		}
	}
	return t, nil
}

var kubernetesLine = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes\s+(v(\d+)\.(\d+)\.\S+)`)

// linkerFlags tell a kubelet which version it is, which the API server wants to know.
func linkerFlags(folder string) (string, error) {
	text := "-s -w"
	module, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return text, nil
	}
	if found := kubernetesLine.FindStringSubmatch(string(module)); found != nil {
		for i, name := range []string{"gitVersion", "gitMajor", "gitMinor"} {
			text += fmt.Sprintf(" -X k8s.io/component-base/version.%s=%s", name, found[i+1])
		}
	}
	return text, err
}

// build compiles into a folder beside the target and renames, so that nobody finds half a program.
func (r recipe) build(ctx context.Context, folder, dir string, out io.Writer) error {
	temporary, err := os.MkdirTemp(dir, building)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	linker, err := linkerFlags(folder)
	if err != nil {
		return err
	}
	began := time.Now()
	fmt.Fprintf(out, "compiling %s, which takes %s\n", strings.Join(r.makes, ", "), r.says)
	args := append([]string{"-buildvcs=false", "-ldflags", linker, "-o", temporary + "/"}, r.flags...)
	err = compile.Run(ctx, compile.Job{
		Name: r.module, Source: folder, Work: temporary, Args: append(args, r.packages...), Env: []string{"CGO_ENABLED=" + r.cgo, "GOWORK=off", "GOFLAGS="}, Out: out,
	})
	if err != nil {
		return err
	}
	for _, name := range r.makes {
		if err := os.Rename(filepath.Join(temporary, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "compiled %s in %s\n", r.module, time.Since(began).Round(time.Second))
	return nil
}

func removeAll(pattern string) error {
	paths, err := filepath.Glob(pattern)
	for _, path := range paths {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// lock waits for a lock that the kernel lifts when its holder dies. The file stays: who removes it lets two hold it.
func lock(ctx context.Context, path string, out io.Writer) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the build lock: %w", err)
	}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for said := false; ; {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
		}
		if !said {
			said = true
			fmt.Fprintln(out, "another process is building what nodes need, waiting for it")
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), file.Close())
		case <-ticker.C:
		}
	}
}
