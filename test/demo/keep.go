// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/csi-tandem/csi-tandem/test/node"
)

// With KEEP=1 the story is played by a process that outlives the one that was called: what it starts dies with it. The
// first process shows what the second one says until the verdict is spoken, and returns its exit code.
const (
	keeperVariable = "CSI_TANDEM_DEMO_KEEPER"
	colourVariable = "CSI_TANDEM_DEMO_COLOUR"
	// codePipe is the descriptor over which the exit code comes.
	codePipe = 3
)

func isKeeper() bool { return os.Getenv(keeperVariable) != "" }

func isColourWanted() bool { return os.Getenv(colourVariable) != "" }

// startKeeper starts the second process and listens to it.
func (d *demo) startKeeper(ctx context.Context) int {
	said, mouth, err := os.Pipe()
	if err != nil {
		return d.failed(err)
	}
	code, codeEnd, err := os.Pipe()
	if err != nil {
		return d.failed(err)
	}
	path, err := os.Executable()
	if err != nil {
		return d.failed(err)
	}
	keeper := exec.Command(path)
	keeper.Env = append(os.Environ(), keeperVariable+"=1")
	if d.colour {
		keeper.Env = append(keeper.Env, colourVariable+"=1")
	}
	keeper.Stdout, keeper.Stderr, keeper.ExtraFiles = mouth, mouth, []*os.File{codeEnd}
	// A session of its own: Ctrl-C on this terminal, or closing it, is not for what is kept.
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := keeper.Start(); err != nil {
		return d.failed(err)
	}
	// Our copies of the keeper's ends: without closing them the pipes would never end.
	_, _ = mouth.Close(), codeEnd.Close()
	told := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			// It stops what it started and speaks its verdict, which is still listened to.
			_ = keeper.Process.Signal(syscall.SIGTERM)
		case <-told:
		}
	}()
	_, copyErr := io.Copy(d.out, said)
	close(told)
	answer, err := io.ReadAll(code)
	if err != nil || copyErr != nil || len(answer) != 1 {
		return d.failed(fmt.Errorf("the process that plays has ended without a verdict"))
	}
	return int(answer[0])
}

func (d *demo) failed(err error) int {
	fmt.Fprintf(d.out, "\nDEMO FAILED: %v\n", err)
	return 1
}

// runAndKeep plays, says how to go on, and stays until it is told to end.
func (d *demo) runAndKeep(ctx context.Context) int {
	// What is started here must not inherit the pipe, or it would stay open as long as that runs.
	syscall.CloseOnExec(codePipe)
	code := os.NewFile(codePipe, "code")
	began := time.Now()
	verdict, err := d.play(ctx)
	e := ending{verdict: verdict, err: err, began: began}
	if d.scene == nil || ctx.Err() != nil {
		// There is nothing to keep, or nobody who wants it.
		return d.tell(code, d.finish(ctx, e))
	}
	d.explain()
	e.kept = true
	result := d.tell(code, d.speak(e))
	if err := d.fallSilent(); err != nil {
		fmt.Fprintln(d.out, err)
	}
	<-ctx.Done()
	if err := d.stage.Close(); err != nil {
		// Into the log, which stays then.
		fmt.Fprintln(d.out, err)
		return 1
	}
	return result
}

func (d *demo) tell(pipe *os.File, code int) int {
	_, _ = pipe.Write([]byte{byte(code)}) // If nobody listens any more, nobody wants to know.
	_ = pipe.Close()
	return code
}

// fallSilent lets go of the terminal, so that whoever listens knows that all has been said.
func (d *demo) fallSilent() error {
	log, err := os.OpenFile(filepath.Join(d.stage.Dir(), "demo.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	for _, descriptor := range []int{int(os.Stdout.Fd()), int(os.Stderr.Fd())} {
		if err := syscall.Dup3(int(log.Fd()), descriptor, 0); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) explain() {
	var logs []string
	for _, p := range d.scene.Cast.Processes() {
		logs = append(logs, p.Log)
	}
	fmt.Fprintf(d.out, `
Everything is left running, in the background. To use it:

  export KUBECONFIG=%s

logs:
  %s
  %s

to try (kubectl is not part of this; any will do):
  kubectl get nodes,csinodes,storageclasses
  kubectl apply -f examples/pvc.yaml
  kubectl wait --for=jsonpath='{.status.phase}'=Bound pvc/disk-pvc
  kubectl get pvc,pv%s
  kubectl delete -f examples/pvc.yaml
  kubectl get events --sort-by=.lastTimestamp

%s

the socket of the driver, for your own CSI calls:
  %s

to stop all of it, and remove its folder:
  kill %d
`, d.stage.Cluster.Kubeconfig(), strings.Join(logs, "\n  "), filepath.Join(d.stage.Cluster.Dir(), "*.log"), d.snapshotLines(), d.podLines(), d.scene.Cast.Socket, os.Getpid())
}

// podLines say what becomes of pods.
func (d *demo) podLines() string {
	if d.isReal {
		return `Pods that you apply run, with the images that are there: ` + node.SandboxImage + ` and ` + node.Shell + `, both
of which have a shell. They have no network.`
	}
	return `Pods that you apply get a node and then stay Pending: no kubelet runs here, and the one that the demo plays is for the pods
of its story only. Claims whose class waits for the first consumer get their volumes all the same, as soon as the scheduler
has chosen a node for the pod.`
}

// snapshotLines are for drivers that make snapshots.
func (d *demo) snapshotLines() string {
	if !d.scene.Cast.Info.Can("CREATE_DELETE_SNAPSHOT") {
		return ""
	}
	return `
  kubectl apply -f examples/snapshot.yaml
  kubectl wait --for=jsonpath='{.status.readyToUse}'=true volumesnapshot/disk-snapshot
  kubectl get volumesnapshots,volumesnapshotcontents
  kubectl delete -f examples/snapshot.yaml`
}
