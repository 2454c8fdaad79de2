// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/csi-tandem/csi-tandem/test/node"
	"github.com/csi-tandem/csi-tandem/test/stage"
	"github.com/csi-tandem/csi-tandem/test/story"
)

// patience is for one thing that is waited for: far more than it takes on a slow machine.
const patience = 2 * time.Minute

const introduction = `csi-tandem: a provisioner and a snapshotter beside one CSI driver, at work on a real Kubernetes control plane.

The control plane (etcd, API server, controller manager, scheduler) and the two sidecars run as processes on this
machine. %s
`

const (
	simulated = `Nothing else is needed. Nodes are simulated: pods get scheduled and do not run; the demo plays the kubelet
and publishes their volumes through the driver's socket. On a new machine what it takes is compiled first, once, which takes
ten minutes or so on two cores.`
	real = `The two workers are real nodes: a kubelet with a containerd each runs the pods and calls the driver by
itself, as root, in mounts and processes of its own that end with the demo. Of the control plane's node there is only the
object, with a taint. On a new machine what it takes is compiled first, once, which takes a quarter of an hour or so on two cores.`
)

// demo is one telling of the story.
type demo struct {
	out    io.Writer
	colour bool
	// driver is the socket of another driver, and chaos says whom to kill; both are empty mostly.
	driver string
	chaos  string
	keep   bool
	// nodes is "real" if somebody wants them to be, and isReal says whether they are.
	nodes  string
	isReal bool

	stage *stage.Stage
	scene *story.Scene
}

func newDemo(out *output) *demo {
	keep := os.Getenv("KEEP")
	return &demo{
		out: out, colour: out.isTerminal() || isColourWanted(),
		driver: os.Getenv("DRIVER"), chaos: os.Getenv("CHAOS"), nodes: os.Getenv("NODES"), keep: keep != "" && keep != "0",
	}
}

// check refuses what could only fail later, before anything is built or started.
func (d *demo) check(ctx context.Context) error {
	switch d.chaos {
	case "", "both", string(stage.Provisioner), string(stage.Snapshotter):
	default:
		return fmt.Errorf("CHAOS is provisioner, snapshotter or both, not %q", d.chaos)
	}
	switch {
	case d.nodes != "" && d.nodes != "real" && d.nodes != "simulated":
		return fmt.Errorf("NODES is real or simulated, not %q", d.nodes)
	case d.nodes == "real" && d.driver != "":
		return errors.New("NODES=real is for the example driver, since the one that DRIVER names would have to register with the kubelets of the demo: leave out one of the two")
	case d.driver == "":
		return nil
	}
	if _, err := stage.Greet(ctx, d.driver); err != nil {
		return fmt.Errorf("the variable DRIVER: %w", err)
	}
	return nil
}

// run plays, cleans up and speaks the verdict, which is the last line.
func (d *demo) run(ctx context.Context) int {
	began := time.Now()
	verdict, err := d.play(ctx)
	return d.finish(ctx, ending{verdict: verdict, err: err, began: began})
}

// ending is how a telling came out.
type ending struct {
	verdict string
	err     error
	began   time.Time
	// interrupted is set if somebody wanted it to end early.
	interrupted bool
	// kept is set if all of it is still running.
	kept bool
}

// finish stops everything. If something failed, the logs stay.
func (d *demo) finish(ctx context.Context, e ending) int {
	e.interrupted = ctx.Err() != nil && e.err != nil
	if d.stage == nil {
		return d.speak(e)
	}
	fmt.Fprintln(d.out, "\nstopping everything that was started")
	ended := d.stage.End()
	switch {
	case ended != nil:
		// What could not be ended may still be in use: nothing is removed below it.
		e.err, e.interrupted = errors.Join(e.err, fmt.Errorf("not everything could be stopped: %w", ended)), false
	case e.err == nil || e.interrupted:
		if err := d.stage.Remove(); err != nil {
			e.err, e.interrupted = errors.Join(e.err, err), false
		}
	default:
		e.err = errors.Join(e.err, d.stage.KeepLogs())
	}
	return d.speak(e)
}

// codeInterrupted is what shells return for a program that was interrupted.
const codeInterrupted = 130

// speak says the last line, and returns the exit code that agrees with it.
func (d *demo) speak(e ending) int {
	took := time.Since(e.began).Round(time.Second)
	where := "setting up"
	if d.scene != nil {
		where = "after the last step"
	}
	var failed *story.StepError
	if errors.As(e.err, &failed) {
		where = "step " + failed.Step
	}
	switch {
	case e.err == nil:
		fmt.Fprintf(d.out, "\nDEMO PASSED: %s, in %s\n", e.verdict, took)
		return 0
	case e.interrupted:
		fmt.Fprintf(d.out, "\ninterrupted at %s, everything stopped (after %s)\n", where, took)
		return codeInterrupted
	}
	fmt.Fprintf(d.out, "\nwhat is known about the failure:\n  %s\n", strings.ReplaceAll(e.err.Error(), "\n", "\n  "))
	if d.stage != nil && !e.kept {
		if _, err := os.Stat(d.stage.Dir()); err == nil {
			fmt.Fprintf(d.out, "\nthe logs stay in %s; when they are of no use any more:\n  rm -rf %s\n", d.stage.Dir(), d.stage.Dir())
		}
	}
	fmt.Fprintf(d.out, "\nDEMO FAILED: %s (after %s)\n", where, took)
	return 1
}

// play opens the stage and plays the story on it.
func (d *demo) play(ctx context.Context) (verdict string, err error) {
	options, roles := d.choose()
	if d.stage, err = stage.Open(ctx, options); err != nil {
		return "", fmt.Errorf("setting up: %w", err)
	}
	cast, victims, err := d.cast(ctx, roles)
	if err != nil {
		return "", fmt.Errorf("setting up: %w", err)
	}
	out := story.NewNarrator(d.out)
	if d.colour {
		out = story.NewTerminalNarrator(d.out)
	}
	d.introduce(cast)
	d.scene = &story.Scene{Stage: d.stage, Cast: cast, Out: out, Patience: patience}
	seed := uint64(time.Now().UnixNano())
	chaos := stage.StartChaos(ctx, seed, victims...)
	err = story.Play(ctx, d.scene)
	kills, chaosErr := chaos.Stop()
	err = errors.Join(err, chaosErr)
	for _, p := range cast.Processes() {
		for _, death := range p.Deaths() {
			err = errors.Join(err, errors.New(death))
		}
	}
	return d.verdict(kills, seed), err
}

// choose says what is set up: real nodes if they are wanted and can be.
func (d *demo) choose() (stage.Options, stage.Roles) {
	options := stage.Options{Out: d.out, Nodes: story.Nodes(story.OneZone)}
	roles := stage.Roles{Topology: story.Topology(story.OneZone)}
	if d.driver != "" {
		roles = stage.Roles{Socket: d.driver}
	}
	how := simulated
	if d.nodes == "real" {
		if missing := node.Missing(); len(missing) > 0 {
			fmt.Fprintf(d.out, "NODES=real is not possible here, so the nodes are simulated: %s.\n\n", strings.Join(missing, "; "))
		} else {
			d.isReal, how = true, real
			story.Real(&options, &roles)
		}
	}
	fmt.Fprintf(d.out, introduction+"\n", how)
	return options, roles
}

// cast starts the driver and, with its socket and a kubeconfig and no other flag, the sidecars. Beside real nodes the
// provisioner also tells the scheduler where there is room.
func (d *demo) cast(ctx context.Context, roles stage.Roles) (*stage.Cast, []*stage.Process, error) {
	cast, err := d.stage.NewCast(ctx, roles)
	if err != nil {
		return nil, nil, err
	}
	var victims []*stage.Process
	for _, program := range []stage.Program{stage.Provisioner, stage.Snapshotter} {
		if program == stage.Snapshotter && !cast.Info.Can("CREATE_DELETE_SNAPSHOT") {
			fmt.Fprintf(d.out, "the snapshotter is not started: the driver %s makes no snapshots\n", cast.Info.Name)
			continue
		}
		var flags []string
		if d.isReal && program == stage.Provisioner {
			flags = story.RealFlags
		}
		p, err := cast.StartSidecar(program, flags...)
		if err != nil {
			return nil, nil, err
		}
		if d.chaos == string(program) || d.chaos == "both" {
			victims = append(victims, p)
		}
	}
	if d.chaos != "" && len(victims) == 0 {
		return nil, nil, fmt.Errorf("CHAOS=%s: there is no such sidecar beside this driver", d.chaos)
	}
	return cast, victims, nil
}

func (d *demo) introduce(cast *stage.Cast) {
	for _, p := range cast.Processes() {
		fmt.Fprintf(d.out, "started %-12s (process %d) %s\n", p.Name, p.ID(), strings.Join(p.Args, " "))
	}
	if cast.Driver == nil {
		fmt.Fprintf(d.out, "driver %s was there already, at %s\n", cast.Info.Name, cast.Socket)
	}
	fmt.Fprintf(d.out, "logs are in %s\n", d.stage.Dir())
}

func (d *demo) verdict(kills map[string]int, seed uint64) string {
	skipped := d.scene.Skipped()
	text := fmt.Sprintf("%d steps", d.scene.Steps()-len(skipped))
	if len(skipped) > 0 {
		text += fmt.Sprintf(", %d skipped for what the driver lacks", len(skipped))
	}
	for _, program := range []stage.Program{stage.Provisioner, stage.Snapshotter} {
		if count := kills[string(program)]; count > 0 {
			text += fmt.Sprintf(", the %s killed %d times", program, count)
		}
	}
	if len(kills) > 0 {
		text += fmt.Sprintf(" (seed %d)", seed)
	}
	return text
}
