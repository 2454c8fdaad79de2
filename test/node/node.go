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
	// Dir holds all data and logs. Its path has to be short, since sockets are in it.
	Dir string
	// Programs is a folder of programs that are run inside, besides those of the nodes.
	Programs string
	// Remove is removed by the next run if this one is killed: Dir, or a folder around it.
	Remove string
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
	group   string
	mark    *mark
	first   *program
	workers map[string]*worker
	execs   atomic.Int64
}

// Start builds what is to be built, removes what killed runs have left, and starts the nodes. The context bounds the start.
func Start(ctx context.Context, options Options) (*Machine, error) {
	if missing := Missing(); len(missing) > 0 {
		return nil, fmt.Errorf("starting real nodes: %s", strings.Join(missing, "; "))
	}
	if err := checkRoom(options.Dir, options.Nodes); err != nil {
		return nil, fmt.Errorf("starting real nodes: %w", err)
	}
	built, err := build(ctx, options.Out)
	if err != nil {
		return nil, err
	}
	if err := Sweep(options.Out); err != nil {
		return nil, fmt.Errorf("removing what an earlier run left: %w", err)
	}
	if err := os.MkdirAll(options.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the nodes: %w", err)
	}
	m := &Machine{options: options, tools: built, workers: map[string]*worker{}}
	if m.mark, err = newMark(options.Dir, options.Remove); err != nil {
		return nil, err
	}
	m.group = m.mark.Group
	if err := m.start(ctx); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
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
		w := &worker{machine: m, name: name, dir: filepath.Join(m.options.Dir, name)}
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
		name: "machine", path: m.tools.machine, args: m.holdArgs(), log: filepath.Join(m.options.Dir, "machine.log"),
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
	args := []string{"hold", m.group, m.options.Remove, m.options.Dir, m.tools.dir}
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
	enter := []string{"enter", strconv.Itoa(m.first.id()), filepath.Join(m.group, "system", name), path}
	return m.tools.machine, append(enter, args...)
}

// Has says whether a node is one of these.
func (m *Machine) Has(node string) bool { return slices.Contains(m.options.Nodes, node) }

// Dir is the folder of a node's kubelet.
func (m *Machine) Dir(node string) string { return filepath.Join(m.options.Dir, node, "kubelet") }

// Logs are the files that tell what the nodes did.
func (m *Machine) Logs() string { return filepath.Join(m.options.Dir, "*", "*.log") }

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
// logs stay in the folder, which is its owner's to remove.
func (m *Machine) Stop() error {
	var failures []error
	for _, w := range m.workers {
		w.stop()
	}
	if m.first != nil {
		m.first.kill()
	}
	failures = append(failures, cgroup.Kill(m.group, endPatience), cgroup.Remove(m.group), freeLoops(m.options.Remove))
	failures = append(failures, left(m.group, m.options.Dir, m.options.Remove))
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("ending the nodes: %w", err)
	}
	return m.mark.remove()
}
