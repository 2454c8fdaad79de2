// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
)

// asDriver makes the test's own binary be the driver, so that a real process
// can be killed.
const asDriver = "TEST_AS_DRIVER"

func TestMain(m *testing.M) {
	if os.Getenv(asDriver) != "" {
		os.Exit(start())
	}
	os.Exit(m.Run())
}

type process struct {
	cmd *exec.Cmd
	csi.ControllerClient
	control *control.Client
	// said is to be read when the process has ended.
	said *bytes.Buffer
}

func launch(t *testing.T, dir string, more ...string) *process {
	t.Helper()
	args := append([]string{"--state=" + filepath.Join(dir, "state"), "--name=driver.example",
		"--endpoint=unix://" + filepath.Join(dir, "csi"), "--control=unix://" + filepath.Join(dir, "ctl"), "--node-topology=n=zone=a"}, more...)
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asDriver+"=1")
	said := &bytes.Buffer{}
	cmd.Stderr = io.MultiWriter(os.Stderr, said)
	must(t, cmd.Start())
	conn, err := grpc.NewClient("unix://"+filepath.Join(dir, "csi"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	c, err := control.Dial(filepath.Join(dir, "ctl"))
	must(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	deadline := time.Now().Add(20 * time.Second)
	for {
		// A killed predecessor leaves its sockets behind: that one is there says nothing.
		var csiSocket net.Conn
		if csiSocket, err = net.Dial("unix", filepath.Join(dir, "csi")); err == nil {
			_ = csiSocket.Close()
			if _, err = c.Rules(t.Context()); err == nil {
				return &process{cmd, csi.NewControllerClient(conn), c, said}
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the driver does not come up: %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (p *process) exitCode(t *testing.T) int {
	t.Helper()
	var exit *exec.ExitError
	if err := p.cmd.Wait(); errors.As(err, &exit) {
		return exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return 0
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ask(name string) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}}}
}

func TestEverythingSurvivesAKill(t *testing.T) {
	dir, err := os.MkdirTemp("", "d")
	must(t, err)
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	p := launch(t, dir)
	first, err := p.CreateVolume(ctx, ask("first"))
	must(t, err)
	snap, err := p.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "snap", SourceVolumeId: first.GetVolume().GetVolumeId()})
	must(t, err)
	must(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()

	p = launch(t, dir)
	again, err := p.CreateVolume(ctx, ask("first"))
	must(t, err)
	if again.GetVolume().GetVolumeId() != first.GetVolume().GetVolumeId() {
		t.Errorf("after a kill, %s became %s", first, again)
	}
	if _, err := p.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: snap.GetSnapshot().GetSnapshotId()}); err != nil {
		t.Error(err)
	}

	// A crash when the work is done and nobody has been told.
	_, err = p.control.CommitThenCrash(ctx, control.On("CreateVolume").About("second"))
	must(t, err)
	if _, err := p.CreateVolume(ctx, ask("second")); status.Code(err) != codes.Unavailable {
		t.Errorf("a crash was answered with %v", err)
	}
	if got := p.exitCode(t); got != 137 {
		t.Errorf("exit code %d, want 137", got)
	}
	p = launch(t, dir)
	all, err := p.control.Inventory(ctx)
	must(t, err)
	if len(all.Volumes) != 2 || len(all.Snapshots) != 1 {
		t.Errorf("stored are %+v", all)
	}
	must(t, p.control.Crash(ctx))
	if got := p.exitCode(t); got != 137 {
		t.Errorf("exit code %d, want 137", got)
	}

	p = launch(t, dir)
	must(t, p.cmd.Process.Signal(os.Interrupt))
	if got := p.exitCode(t); got != 0 {
		t.Errorf("exit code %d after a signal, want 0", got)
	}
}

// Each kubelet has to hear of its own node: with one answer for all, every node would have the first one's zone.
func TestEachKubeletFindsItsNode(t *testing.T) {
	dir, err := os.MkdirTemp("", "d")
	must(t, err)
	defer os.RemoveAll(dir)
	first, second := filepath.Join(dir, "k1"), filepath.Join(dir, "k2")
	flags := []string{"--node-topology=n2=zone=b", "--kubelet=n=" + first, "--kubelet=n2=" + second, "--block=file"}
	for round := range 2 { // The second comes after a kill, and finds the sockets of the first.
		p := launch(t, dir, flags...)
		for kubelet, zone := range map[string]string{first: "a", second: "b"} {
			conn, err := grpc.NewClient("unix://"+filepath.Join(kubelet, "plugins", "driver.example", "csi.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
			must(t, err)
			defer conn.Close()
			info, err := csi.NewNodeClient(conn).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}, grpc.WaitForReady(true))
			must(t, err)
			if got := info.GetAccessibleTopology().GetSegments()["zone"]; got != zone {
				t.Errorf("the node of %s is in zone %q, want %q", kubelet, got, zone)
			}
			// The socket appears just after the other.
			registry := filepath.Join(kubelet, "plugins_registry", "driver.example-reg.sock")
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				if socket, err := net.Dial("unix", registry); err == nil {
					_ = socket.Close()
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("nobody listens at %s", registry)
				}
			}
		}
		must(t, p.cmd.Process.Kill())
		_ = p.cmd.Wait()
		// A mistyped folder would be made, and nobody would ever look into it.
		for _, kubelet := range []string{first, second} {
			if isSaid := strings.Contains(p.said.String(), "no "+kubelet+" yet"); isSaid != (round == 0) {
				t.Errorf("round %d, that %s was not there is said: %t", round, kubelet, isSaid)
			}
		}
	}
}
