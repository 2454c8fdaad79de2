// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/clientset/versioned/typed/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/proxy"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// programs are the two that things are done to.
var programs = []stage.Program{stage.Provisioner, stage.Snapshotter}

// crew is a driver with both sidecars beside it, each behind a proxy before the API server and one before the driver, and a
// namespace for their objects.
type crew struct {
	stage *stage.Stage
	cast  *stage.Cast
	kube  kubernetes.Interface
	snaps snapshotv1.SnapshotV1Interface
	// ns is also the first part of every name outside of it.
	ns, driver string
	script     *control.Client

	counter  *proxy.Counter
	apis     map[stage.Program]*proxy.API
	drivers  map[stage.Program]*proxy.Driver
	sidecars map[stage.Program]*stage.Process
	// born is told of each object that a user makes; it may be nil.
	born func(name string, uid types.UID)
	// byHand is told what is left at the driver that nobody but the test knows of; where it is nil, the driver forgets it at once.
	byHand func(name string)
	// metrics are the addresses of their HTTP endpoints.
	metrics map[stage.Program]string
}

var (
	serialMu sync.Mutex
	serial   = map[string]int{}
)

// newCrew sets one up, with all that its objects need. It lives until close.
func newCrew(ctx context.Context, s *stage.Stage, name string, flags ...string) (*crew, error) {
	serialMu.Lock()
	serial[name]++
	ns := fmt.Sprint(name, serial[name])
	serialMu.Unlock()
	c := &crew{
		stage: s, kube: s.Kube, snaps: s.Snapshots.SnapshotV1(), ns: ns, driver: ns + ".csi.example", counter: proxy.NewCounter(),
		apis: map[stage.Program]*proxy.API{}, drivers: map[stage.Program]*proxy.Driver{},
		sidecars: map[stage.Program]*stage.Process{}, metrics: map[stage.Program]string{},
	}
	err := c.furnish(ctx)
	for _, program := range programs {
		if err == nil {
			err = c.launch(ctx, program, flags)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("setting up %s: %w", ns, err), c.close())
	}
	return c, nil
}

func (c *crew) furnish(ctx context.Context) error {
	_, err := c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.ns}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := c.stage.Cluster.AwaitNamespace(ctx, c.ns); err != nil {
		return err
	}
	// The disk is not what is tried here, and many calls are to be remembered.
	c.cast, err = c.stage.NewCast(ctx, stage.Roles{Name: c.driver, Flags: []string{"--sync=false", "--log-calls=1000"}})
	if err != nil {
		return err
	}
	c.script = c.cast.Control
	return c.makeClasses(ctx)
}

// launch starts a sidecar behind two proxies of its own, so that it is known whose each effect is.
func (c *crew) launch(ctx context.Context, program stage.Program, flags []string) error {
	account, err := c.stage.Cluster.ServiceAccountConfig(ctx, stage.Namespace, "csi-"+string(program))
	if err != nil {
		return err
	}
	api, err := proxy.NewAPI(c.stage.Cluster.Config())
	if err != nil {
		return err
	}
	c.apis[program] = api
	api.UseCounter(c.counter, string(program))
	driver, err := proxy.NewDriver(c.cast.Socket, filepath.Join(c.cast.Dir(), string(program[:1])+".sock"))
	if err != nil {
		return err
	}
	c.drivers[program] = driver
	driver.UseCounter(c.counter, string(program))
	kubeconfig, err := api.Kubeconfig(c.cast.Dir(), account.BearerToken)
	if err != nil {
		return err
	}
	if c.metrics[program], err = freeAddress(); err != nil {
		return err
	}
	own := []string{"--csi-address=" + driver.Socket(), "--kubeconfig=" + kubeconfig, "--http-endpoint=" + c.metrics[program]}
	c.sidecars[program], err = c.cast.StartSidecar(program, append(own, flags...)...)
	return err
}

// freeAddress is one that nothing listens on right now.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// close ends the processes first, so that nothing complains about proxies that are gone.
func (c *crew) close() error {
	var failures []error
	if c.cast != nil {
		failures = append(failures, c.cast.Close())
	}
	for _, program := range programs {
		if api := c.apis[program]; api != nil {
			failures = append(failures, api.Close())
		}
		if driver := c.drivers[program]; driver != nil {
			failures = append(failures, driver.Close())
		}
	}
	return errors.Join(failures...)
}

// deaths tells each end of a sidecar that nobody asked for, and each panic.
func (c *crew) deaths() []string {
	var all []string
	for _, program := range programs {
		all = append(all, c.sidecars[program].Deaths()...)
	}
	return all
}

// calls are those that reached the driver's proxies, of one method.
func (c *crew) calls(method string) []proxy.Call {
	var all []proxy.Call
	for _, program := range programs {
		for _, call := range c.drivers[program].Calls() {
			if call.Method == method {
				all = append(all, call)
			}
		}
	}
	return all
}

func (c *crew) clearJournals() {
	for _, program := range programs {
		c.apis[program].ClearRequests()
		c.drivers[program].ClearCalls()
	}
}

// isQuiet waits for a time without effects.
func (c *crew) isQuiet(ctx context.Context, d time.Duration) bool {
	before := c.counter.Count()
	return rest(ctx, d) && c.counter.Count() == before
}
