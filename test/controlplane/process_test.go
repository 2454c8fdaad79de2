// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"os/exec"
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

// groupIsGone waits, because the members of a group that were not our children are reaped by somebody else.
func groupIsGone(pid int) bool {
	for range 100 {
		if errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH) {
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
	p := startShell(t, "sleep 300 & sleep 300")
	time.Sleep(200 * time.Millisecond)
	p.kill()
	if !groupIsGone(p.cmd.Process.Pid) {
		t.Error("a grandchild survived")
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
