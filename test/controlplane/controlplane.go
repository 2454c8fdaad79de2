// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a real Kubernetes control plane on this machine: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, as four child processes of one program that it builds once and caches.
//
// It owns that program's life (building, certificates, ports, flags, waiting, killing, cleaning up) and the few
// things that tests and the demo need around it: simulated nodes, applying manifests, credentials of a service
// account, and counting requests in the audit log.
//
// It must not know this project's controllers, drivers or objects; it serves anything that speaks to an API server.
//
// It stands outside the walks: end-to-end tests, benchmarks and the demo start it below everything else. The program
// itself is the module in program/, kept apart so that its dependencies never reach the sidecars.
package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Part is one of the four programs of the control plane.
type Part string

// The parts, in the order in which they start.
const (
	Etcd              Part = "etcd"
	APIServer         Part = "kube-apiserver"
	ControllerManager Part = "kube-controller-manager"
	Scheduler         Part = "kube-scheduler"
)

const (
	startTimeout  = 3 * time.Minute
	startAttempts = 3
)

// Options says how a cluster is to be run. The zero value is a quiet cluster in a temporary folder.
type Options struct {
	// Dir holds certificates, data and logs. When empty, a temporary folder is made, and removed by Stop.
	Dir string
	// Keep makes Stop leave a temporary folder in place, for reading the logs afterwards.
	Keep bool
	// AuditLog makes the API server write one line for each request, without bodies.
	AuditLog bool
	// Out receives a line for each stage; nil is silent.
	Out io.Writer
	// Args are flags appended to a part's own, for example larger limits for a scale run.
	Args map[Part][]string
}

// Cluster is a running control plane. Its methods may be called from several goroutines.
type Cluster struct {
	options Options
	binary  string
	dir     string
	ownsDir bool
	out     io.Writer

	credentials credentials
	ports       ports
	config      *rest.Config
	httpClient  *http.Client
	clientset   kubernetes.Interface
	dynamic     dynamic.Interface
	applier     *applier

	mu        sync.Mutex
	processes map[Part]*process
	stopped   bool
}

// Start builds the program if it has not been built yet, starts a control plane and waits until it can schedule pods.
// The context bounds the start only; the cluster runs until Stop, or until this process dies.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	out := io.Writer(io.Discard)
	if options.Out != nil {
		out = &sharedWriter{out: options.Out}
	}
	// The build has the writer itself, which may be a terminal; nobody else writes until it is done.
	binary, err := Build(ctx, cmp.Or(options.Out, io.Discard))
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, binary: binary, out: out, processes: map[Part]*process{}}
	if err := c.prepareDir(); err != nil {
		return nil, err
	}
	if err := c.startAll(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) prepareDir() error {
	var err error
	if c.options.Dir == "" {
		c.ownsDir = true
		c.dir, err = os.MkdirTemp("", "csi-tandem-controlplane-")
	} else if c.dir, err = filepath.Abs(c.options.Dir); err == nil {
		err = os.MkdirAll(c.dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("making the cluster's folder: %w", err)
	}
	return nil
}

// startAll tries again with other ports when somebody took one between choosing and binding it.
func (c *Cluster) startAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := c.startOnce(ctx)
		if err == nil || attempt == startAttempts || !isPortClash(err) {
			return err
		}
		fmt.Fprintf(c.out, "a port was taken meanwhile, choosing others: %v\n", err)
		c.stopProcesses()
	}
}

func (c *Cluster) startOnce(ctx context.Context) error {
	chosen, err := choosePorts()
	if err != nil {
		return err
	}
	c.ports = chosen
	if c.credentials, err = writeCredentials(c.dir); err != nil {
		return fmt.Errorf("making credentials: %w", err)
	}
	if err := c.connect(); err != nil {
		return err
	}
	if c.options.AuditLog {
		if err := os.WriteFile(c.path("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
			return fmt.Errorf("writing the audit policy: %w", err)
		}
	}
	began := time.Now()
	for _, part := range []Part{Etcd, APIServer} {
		if err := c.StartPart(ctx, part); err != nil {
			return err
		}
	}
	if err := c.startControllers(ctx); err != nil {
		return err
	}
	if err := c.awaitDefaults(ctx); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "control plane ready after %.1fs: %s\n", time.Since(began).Seconds(), c.config.Host)
	return nil
}

// startControllers starts the two clients of the API server side by side; they do not need each other.
func (c *Cluster) startControllers(ctx context.Context) error {
	results := make(chan error, 2)
	for _, part := range []Part{ControllerManager, Scheduler} {
		go func() { results <- c.StartPart(ctx, part) }()
	}
	return errors.Join(<-results, <-results)
}

func (c *Cluster) connect() error {
	c.config = &rest.Config{
		Host:            c.ports.url(APIServer),
		BearerToken:     c.credentials.tokens[adminUser],
		TLSClientConfig: rest.TLSClientConfig{CAData: c.credentials.caPEM},
		QPS:             5000,
		Burst:           10000,
	}
	for _, file := range []struct{ name, user string }{
		{"admin.kubeconfig", adminUser},
		{"kube-controller-manager.kubeconfig", controllerManagerUser},
		{"kube-scheduler.kubeconfig", schedulerUser},
	} {
		config := rest.CopyConfig(c.config)
		config.BearerToken = c.credentials.tokens[file.user]
		if err := WriteKubeconfig(c.path(file.name), config); err != nil {
			return err
		}
	}
	var err error
	if c.httpClient, err = rest.HTTPClientFor(c.config); err != nil {
		return fmt.Errorf("making an HTTP client: %w", err)
	}
	if c.clientset, err = kubernetes.NewForConfigAndClient(c.config, c.httpClient); err != nil {
		return fmt.Errorf("making a clientset: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(c.config, c.httpClient); err != nil {
		return fmt.Errorf("making a dynamic client: %w", err)
	}
	c.applier = newApplier(c.clientset.Discovery(), c.dynamic)
	return nil
}

// Stop ends every part and removes a temporary folder unless it is to be kept. Calling it again does nothing.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return nil
	}
	c.stopped = true
	c.mu.Unlock()

	c.stopProcesses()
	if c.httpClient != nil {
		utilnet.CloseIdleConnectionsFor(c.httpClient.Transport)
	}
	if c.ownsDir && !c.options.Keep {
		if err := os.RemoveAll(c.dir); err != nil {
			return fmt.Errorf("removing the cluster's folder: %w", err)
		}
	}
	return nil
}

// Config returns a copy of the administrator's client configuration, with limits that no test will meet.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig is the path of the administrator's kubeconfig file.
func (c *Cluster) Kubeconfig() string { return c.path("admin.kubeconfig") }

// Clientset speaks to the API server as the administrator.
func (c *Cluster) Clientset() kubernetes.Interface { return c.clientset }

// Dynamic speaks to the API server as the administrator.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Dir is the folder with certificates, data and one log file for each part.
func (c *Cluster) Dir() string { return c.dir }

// AuditLog is the path of the audit log, empty unless Options asked for one.
func (c *Cluster) AuditLog() string {
	if !c.options.AuditLog {
		return ""
	}
	return c.path("audit.log")
}

func (c *Cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.dir}, elements...)...)
}

// sharedWriter keeps lines whole that parts write while they start side by side.
type sharedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *sharedWriter) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(data)
}
