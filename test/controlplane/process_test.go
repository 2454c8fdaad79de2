// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func startShell(t *testing.T, script string) *process {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	p, err := startProcess(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// isGone waits a little. A process that was not our child stays as a zombie until somebody reaps it, which in a
// container without an init may be never; it does not run any more.
func isGone(pid int) bool {
	for range 100 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		isZombie := err == nil && strings.Contains(string(stat), ") Z ")
		if isZombie || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

func TestStopKillsWhoeverIgnoresTheRequest(t *testing.T) {
	p := startShell(t, "trap '' TERM; while :; do sleep 0.1; done")
	time.Sleep(200 * time.Millisecond)
	p.stop(300 * time.Millisecond)
	if p.isRunning() || p.err == nil {
		t.Error("the process still runs, or ended by itself")
	}
	p.stop(time.Second)
	p.kill()
}

func TestStopLetsAProcessEndByItself(t *testing.T) {
	p := startShell(t, "trap 'exit 7' TERM; while :; do sleep 0.1; done")
	time.Sleep(200 * time.Millisecond)
	p.stop(20 * time.Second)
	var exit *exec.ExitError
	if !errors.As(p.err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("it ended with %v, want its own exit code 7", p.err)
	}
}

func TestKillReachesTheWholeGroup(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd := exec.Command("sh", "-c", "sleep 300 >/dev/null & echo $!; wait")
	cmd.Stdout = writer
	p, err := startProcess(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	var grandchild int
	if _, err := fmt.Fscanln(reader, &grandchild); err != nil {
		t.Fatal(err)
	}
	if syscall.Kill(grandchild, 0) != nil {
		t.Fatal("the grandchild does not run")
	}
	p.kill()
	if !isGone(grandchild) {
		t.Error("a grandchild survived")
	}
}

// TestLeashedHelper is not a test by itself: it is the parent that dies in the one below.
func TestLeashedHelper(t *testing.T) {
	if os.Getenv("CONTROLPLANE_LEASHED_HELPER") == "" {
		t.Skip("runs only as the child of another test")
	}
	p, err := startProcess(exec.Command("sleep", "300"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("child", p.cmd.Process.Pid)
	// Other goroutines come and go, and with them the threads that a child must not hang on.
	runtime.GC()
	select {}
}

// A test binary that is killed must not leave a control plane behind.
func TestChildrenDieWithTheirParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a parent-death signal")
	}
	parent := exec.Command(os.Args[0], "-test.run=^TestLeashedHelper$")
	parent.Env = append(os.Environ(), "CONTROLPLANE_LEASHED_HELPER=1")
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	_, scanErr := fmt.Fscanf(output, "child %d\n", &pid)
	alive := pid != 0 && syscall.Kill(pid, 0) == nil
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// It was killed, which is the error that this returns.
	_ = parent.Wait()
	if scanErr != nil || !alive {
		t.Fatalf("the helper's child %d did not run: %v", pid, scanErr)
	}
	if !isGone(pid) {
		t.Errorf("process %d outlived its parent", pid)
	}
}

func TestStartProcessReportsAMissingProgram(t *testing.T) {
	if _, err := startProcess(exec.Command("/no/such/program")); err == nil {
		t.Error("a missing program was started")
	}
}

func TestPartEnvironmentIsNotSteeredFromOutside(t *testing.T) {
	got := partEnvironment([]string{"PATH=/bin", "ETCD_NAME=x", "KUBECONFIG=y", "https_proxy=z", "NO_PROXY=q", "HOME=/h"})
	if !slices.Equal(got, []string{"PATH=/bin", "HOME=/h"}) {
		t.Errorf("got %v", got)
	}
}

func TestPortClashIsRecognised(t *testing.T) {
	clash := &PartError{Part: Etcd, Err: errEnded, Log: "listen tcp 127.0.0.1:1: bind: address already in use"}
	if !isPortClash(errors.Join(errors.New("other"), clash)) {
		t.Error("a clash was not recognised")
	}
	if isPortClash(&PartError{Part: Etcd, Err: errEnded, Log: "flag provided but not defined"}) || isPortClash(nil) {
		t.Error("another failure was taken for a clash")
	}
	if !strings.Contains(clash.Error(), "address already in use") || !errors.Is(clash, errEnded) {
		t.Errorf("the error hides its cause: %v", clash)
	}
}

func TestChosenPortsDiffer(t *testing.T) {
	chosen, err := choosePorts()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{chosen.etcdPeer: true}
	for _, port := range chosen.serving {
		seen[port] = true
	}
	if len(seen) != 5 {
		t.Errorf("got %d different ports, want 5", len(seen))
	}
}
