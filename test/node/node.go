// SPDX-License-Identifier: Apache-2.0

// Package node runs real Kubernetes nodes beside a control plane of this machine: for each a kubelet of the same version
// and a containerd, which run real pods, all built from Go modules and from programs that are here already.
//
// It owns their life. They run inside a view of this machine whose mounts and processes end with its first process, and
// that ends when we do, however we do; so nothing of it is seen outside but cgroups, loop devices and folders, and those
// have a mark by which the next run finds and removes what a killed one left.
//
// It must not know drivers, sidecars or what pods are for.
//
// It stands outside the walks, beside the control plane and below the stage.
package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/csi-tandem/csi-tandem/test/node/cgroup"
)

// furnishPatience is for the first process of a machine to be ready, and endPatience for processes to end.
const (
	furnishPatience = 30 * time.Second
	endPatience     = 30 * time.Second
)

// Options says what nodes there are to be.
type Options struct {
	// Mark says which folder holds all data and logs. The path of that has to be short, since sockets are in it.
	Mark *Mark
	// Programs is a folder of programs that are run inside, besides those of the nodes.
	Programs string
	// Kubeconfig is what kubelets use, and Kube speaks to the same API server.
	Kubeconfig string
	Kube       kubernetes.Interface
	// Nodes are their names.
	Nodes []string
	// Disks are empty folders that each of them finds at these paths.
	Disks []string
	// Out is told what is being built and started.
	Out io.Writer
}

// Machine is what the nodes run inside.
type Machine struct {
	options Options
	tools   tools
	first   *program
	workers map[string]*worker
	execs   atomic.Int64
}

// Start builds what is to be built, removes what killed runs have left, and starts the nodes. The context bounds the start.
func Start(ctx context.Context, options Options) (*Machine, error) {
	built, err := prepare(ctx, options)
	if err != nil {
		return nil, err
	}
	m := &Machine{options: options, tools: built, workers: map[string]*worker{}}
	options.Mark.isInUse = true
	if err := m.start(ctx); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

// prepare does what has to be done before anything is started.
func prepare(ctx context.Context, options Options) (tools, error) {
	if missing := Missing(); len(missing) > 0 {
		return tools{}, fmt.Errorf("starting real nodes: %s", strings.Join(missing, "; "))
	}
	if err := checkRoom(options.Mark.Dir, options.Nodes); err != nil {
		return tools{}, fmt.Errorf("starting real nodes: %w", err)
	}
	built, err := build(ctx, options.Out)
	if err != nil {
		return tools{}, err
	}
	if err := Sweep(options.Out); err != nil {
		return tools{}, fmt.Errorf("removing what an earlier run left: %w", err)
	}
	if err := os.MkdirAll(options.Mark.Dir, 0o755); err != nil {
		return tools{}, fmt.Errorf("making the folder of the nodes: %w", err)
	}
	return built, nil
}

func (m *Machine) start(ctx context.Context) error {
	began := time.Now()
	if err := m.furnish(ctx); err != nil {
		return err
	}
	if err := m.makeDisks(ctx); err != nil {
		return err
	}
	all, inner := errgroup.WithContext(ctx)
	for _, name := range m.options.Nodes {
		w := &worker{machine: m, name: name, dir: filepath.Join(m.options.Mark.Dir, name)}
		m.workers[name] = w
		all.Go(func() error {
			if err := w.prepare(); err != nil {
				return err
			}
			if err := w.start(inner); err != nil {
				return fmt.Errorf("starting node %s: %w", name, err)
			}
			fmt.Fprintf(m.options.Out, "node %s runs pods after %.1fs\n", name, time.Since(began).Seconds())
			return nil
		})
	}
	return all.Wait()
}

// furnish starts the first process, in namespaces of its own, and waits until it has made its mounts.
func (m *Machine) furnish(ctx context.Context) error {
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting the machine: %w", err)
	}
	defer read.Close()
	m.first = &program{
		name: "machine", path: m.tools.machine, args: m.holdArgs(), log: filepath.Join(m.options.Mark.Dir, "machine.log"),
		stdout: write, flags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
	}
	err = m.first.start()
	_ = write.Close() // The child has its own.
	if err != nil {
		return err
	}
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(read).ReadString('\n')
		said <- line
	}()
	timer := time.NewTimer(furnishPatience)
	defer timer.Stop()
	select {
	case line := <-said:
		if line == "ready\n" {
			return nil
		}
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return fmt.Errorf("starting the machine: it is not ready; the end of its log:\n%s", tail(m.first.log))
}

// holdArgs name what has to be seen inside.
func (m *Machine) holdArgs() []string {
	mark := m.options.Mark
	args := []string{"hold", mark.Group, mark.Around, mark.Dir, m.tools.dir}
	if m.options.Programs != "" {
		args = append(args, m.options.Programs)
	}
	return args
}

func (m *Machine) makeDisks(ctx context.Context) error {
	for _, disk := range m.options.Disks {
		if _, err := m.run(ctx, "", "mkdir", "-p", disk); err != nil {
			return fmt.Errorf("making the disk %s: %w", disk, err)
		}
	}
	return nil
}

// Inside tells how a program is to be started so that it is inside, where it sees the mounts of kubelets and they see its.
func (m *Machine) Inside(name, path string, args []string) (string, []string) {
	enter := []string{"enter", strconv.Itoa(m.first.id()), filepath.Join(m.options.Mark.Group, "system", name), path}
	return m.tools.machine, append(enter, args...)
}

// Has says whether a node is one of these.
func (m *Machine) Has(node string) bool { return slices.Contains(m.options.Nodes, node) }

// Dir is the folder of a node's kubelet.
func (m *Machine) Dir(node string) string { return filepath.Join(m.options.Mark.Dir, node, "kubelet") }

// Logs are the files that tell what the nodes did.
func (m *Machine) Logs() string { return filepath.Join(m.options.Mark.Dir, "*", "*.log") }

// Deaths tells which programs have ended that nobody has ended.
func (m *Machine) Deaths() []string {
	var all []string
	for _, w := range m.workers {
		for _, p := range []*program{w.kubelet, w.containerd} {
			if p != nil && p.hasDied() {
				all = append(all, fmt.Sprintf("%s of node %s ended by itself; the end of its log:\n%s", p.name, w.name, tail(p.log)))
			}
		}
	}
	return all
}

// Stop ends everything and then looks whether anything is left: a process, a mount, a cgroup or a loop device. Data and
// logs stay in the folder, which is its owner's to remove, and so does the mark.
func (m *Machine) Stop() error {
	var failures []error
	for _, w := range m.workers {
		w.stop()
	}
	if m.first != nil {
		m.first.kill()
	}
	mark := m.options.Mark
	failures = append(failures, cgroup.Kill(mark.Group, endPatience), cgroup.Remove(mark.Group), freeLoops(mark.Around))
	failures = append(failures, left(mark.Group, mark.Dir, mark.Around))
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("ending the nodes: %w", err)
	}
	mark.isInUse = false
	return nil
}
