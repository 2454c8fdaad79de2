// SPDX-License-Identifier: Apache-2.0

// Package stage sets up what the demo and the end-to-end tests play on: a real control plane with the manifests of
// deploy/ applied, simulated nodes, and any number of casts, each of them a CSI driver with the two sidecars beside it
// as processes of their own.
//
// It owns processes, sockets, folders and mounts, and that none of them is left behind. It also plays the kubelet of
// simulated nodes: it publishes the volumes of pods through the driver's socket. With real nodes it waits for theirs.
//
// It must not know what the sidecars decide; it starts them as a user would, with a socket and a kubeconfig.
//
// It stands outside the walks, below the story and the tests.
package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v6/clientset/versioned"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
	"github.com/csi-tandem/csi-tandem/test/node"
)

// Namespace is where deploy/ installs the sidecars, and where their service accounts are.
const Namespace = "csi-tandem"

// Options says what to set up.
type Options struct {
	// Out is told what is being built and started; nil is silent.
	Out io.Writer
	// Nodes are made with the stage; casts register their drivers on them.
	Nodes []controlplane.Node
	// Real are the names of nodes that are not simulated: pods run on them, and their kubelets call the driver. They need
	// what node.Missing looks for. Disks are folders that each of them has for local volumes.
	Real  []string
	Disks []string
	// AuditLog makes the API server write down who asked for what.
	AuditLog bool
	// Args are more flags of parts of the control plane.
	Args map[controlplane.Part][]string
}

// Stage is a control plane that is ready for casts.
type Stage struct {
	// Cluster is the control plane.
	Cluster *controlplane.Cluster
	// Kube and Snapshots speak to the API server as its administrator.
	Kube      kubernetes.Interface
	Snapshots snapshotclient.Interface
	// Machine has the real nodes, and is nil without any.
	Machine *node.Machine
	// Root is the checkout that the programs and manifests are from.
	Root string

	out         io.Writer
	dir         string
	mark        *node.Mark
	nodes       []controlplane.Node
	programs    map[Program]string
	kubeconfigs map[Program]string

	mu    sync.Mutex
	casts []*Cast
	count int
}

// Open builds what is to be built and starts the control plane. The context bounds the opening only.
func Open(ctx context.Context, options Options) (*Stage, error) {
	s := &Stage{out: &lines{out: options.Out}, nodes: options.Nodes, kubeconfigs: map[Program]string{}}
	var err error
	if s.Root, err = findRoot(); err != nil {
		return nil, err
	}
	// Sockets live below, and a socket's path has little room: the name is short.
	if s.dir, err = os.MkdirTemp("", "tandem-"); err != nil {
		return nil, fmt.Errorf("making the folder of the stage: %w", err)
	}
	err = s.place()
	if err == nil && len(options.Real) > 0 {
		s.mark, err = node.Announce(s.path("n"), s.dir)
	}
	if err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	if err := s.open(ctx, options); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// place makes the folder's path the one that the kernel tells, for mounts and devices are looked for by it, and refuses one that is too
// long before anything is built.
func (s *Stage) place() error {
	path, err := filepath.Abs(s.dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return fmt.Errorf("finding the folder of the stage: %w", err)
	}
	s.dir = path
	return node.CheckSocket(s.path("c99", controlSocket))
}

func (s *Stage) open(ctx context.Context, options Options) error {
	// Linking the programs and waiting for the control plane to come up need different things of the machine.
	both, inner := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		s.programs, err = build(inner, s.Root, s.path("bin"), s.out)
		return err
	})
	both.Go(func() (err error) {
		s.Cluster, err = controlplane.Start(inner, controlplane.Options{
			Dir: s.path("controlplane"), AuditLog: options.AuditLog, Args: options.Args, Out: s.out,
		})
		return err
	})
	if err := both.Wait(); err != nil {
		return err
	}
	s.Kube = s.Cluster.Clientset()
	var err error
	if s.Snapshots, err = snapshotclient.NewForConfig(s.Cluster.Config()); err != nil {
		return fmt.Errorf("making a client for snapshots: %w", err)
	}
	if err := s.furnish(ctx); err != nil || len(options.Real) == 0 {
		return err
	}
	s.Machine, err = node.Start(ctx, node.Options{
		Mark: s.mark, Programs: filepath.Dir(s.programs[Driver]), Kubeconfig: s.Cluster.Kubeconfig(), Kube: s.Kube, Nodes: options.Real, Disks: options.Disks, Out: s.out,
	})
	return err
}

// furnish applies what an administrator would, and takes credentials of the two service accounts.
func (s *Stage) furnish(ctx context.Context) error {
	err := s.Cluster.Apply(ctx,
		s.file("deploy/crds"),
		s.file("deploy/provisioner/namespace.yaml"), s.file("deploy/provisioner/rbac.yaml"),
		s.file("deploy/snapshotter/namespace.yaml"), s.file("deploy/snapshotter/rbac.yaml"))
	if err != nil {
		return err
	}
	for _, program := range []Program{Provisioner, Snapshotter} {
		s.kubeconfigs[program], err = s.Cluster.ServiceAccountKubeconfig(ctx, Namespace, "csi-"+string(program))
		if err != nil {
			return err
		}
	}
	for _, node := range s.nodes {
		if err := s.Cluster.AddNode(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// Close ends every process and removes every mount and folder. What it returns is what it could not clean up: then the folder stays,
// since what is still mounted there is somebody's data.
func (s *Stage) Close() error {
	if err := s.End(); err != nil {
		return fmt.Errorf("%s stays, since not everything could be stopped: %w", s.dir, err)
	}
	return s.Remove()
}

// End ends every process and removes every mount, and leaves the folder with the logs.
func (s *Stage) End() error {
	failures := []error{s.Settle()}
	if s.Machine != nil {
		failures = append(failures, s.Machine.Stop())
	}
	if s.Cluster != nil {
		failures = append(failures, s.Cluster.Stop())
	}
	failures = append(failures, unmountBelow(s.dir))
	if s.mark != nil {
		failures = append(failures, s.mark.Erase())
	}
	return errors.Join(failures...)
}

// Settle ends the casts and leaves the control plane running.
func (s *Stage) Settle() error {
	s.mu.Lock()
	casts := s.casts
	s.casts = nil
	s.mu.Unlock()
	var failures []error
	for _, c := range casts {
		failures = append(failures, c.Close())
	}
	return errors.Join(failures...)
}

// Remove removes the folder of a stage that has ended.
func (s *Stage) Remove() error {
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("removing the folder of the stage: %w", err)
	}
	return nil
}

// Dir is the folder with all logs, sockets and data.
func (s *Stage) Dir() string { return s.dir }

func (s *Stage) path(elements ...string) string {
	return filepath.Join(append([]string{s.dir}, elements...)...)
}

func (s *Stage) file(name string) string { return filepath.Join(s.Root, filepath.FromSlash(name)) }

// lines lets several writers share one; a nil writer takes everything.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out == nil {
		return len(data), nil
	}
	return l.out.Write(data)
}
