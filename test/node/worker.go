// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/test/node/cgroup"
)

const (
	look          = 100 * time.Millisecond
	startPatience = 2 * time.Minute
)

// worker is one node: a kubelet and its containerd.
type worker struct {
	machine    *Machine
	name       string
	dir        string
	containerd *program
	kubelet    *program
}

func (w *worker) path(elements ...string) string {
	return filepath.Join(append([]string{w.dir}, elements...)...)
}

func (w *worker) socket() string { return w.path("c.sock") }

// groups are where its programs are, and where its pods are.
func (w *worker) groups() []string {
	return []string{filepath.Join(w.machine.options.Mark.Group, "system", w.name), filepath.Join(w.machine.options.Mark.Group, w.name)}
}

func (w *worker) prepare() error {
	for _, folder := range []string{"kubelet", "root", "state", "cni", "logs"} {
		if err := os.MkdirAll(w.path(folder), 0o755); err != nil {
			return fmt.Errorf("making the folders of node %s: %w", w.name, err)
		}
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	for name, content := range w.files(port) {
		if err := os.WriteFile(w.path(name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("writing the configuration of node %s: %w", w.name, err)
		}
	}
	w.containerd = w.program("containerd", w.machine.tools.path("containerd"), "--config", w.path("containerd.toml"))
	w.kubelet = w.program("kubelet", w.machine.tools.path("kubelet"), "--config", w.path("kubelet.yaml"),
		"--kubeconfig", w.machine.options.Kubeconfig, "--hostname-override", w.name, "--root-dir", w.path("kubelet"), "--cert-dir", w.path("kubelet", "pki"))
	return nil
}

func (w *worker) program(name, path string, args ...string) *program {
	p := &program{name: name, log: w.path(name + ".log")}
	p.path, p.args = w.machine.Inside(w.name, path, args)
	// containerd finds its shim there.
	p.env = []string{"PATH=" + w.machine.tools.dir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return p
}

// start starts the two programs and waits until pods can be sent to the node.
func (w *worker) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	// A kubelet makes no group for its pods, only groups in it.
	for _, group := range w.groups() {
		if err := cgroup.Make(group); err != nil {
			return err
		}
	}
	if err := w.containerd.start(); err != nil {
		return err
	}
	if err := w.await(ctx, w.containerd, w.isServing); err != nil {
		return err
	}
	image, err := w.machine.tools.image(ctx)
	if err != nil {
		return err
	}
	if out, err := w.machine.run(ctx, w.name, w.machine.tools.path("ctr"), "-a", w.socket(), "-n", "k8s.io", "images", "import", "--local", image); err != nil {
		return fmt.Errorf("importing the image: %w: %s", err, out)
	}
	began := time.Now()
	if err := w.kubelet.start(); err != nil {
		return err
	}
	return w.await(ctx, w.kubelet, func(ctx context.Context) error { return w.isReady(ctx, began) })
}

func (w *worker) isServing(ctx context.Context) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "unix", w.socket())
	if err != nil {
		return err
	}
	_ = connection.Close() // Nothing was sent.
	_, err = w.machine.run(ctx, w.name, w.machine.tools.path("ctr"), "-a", w.socket(), "version")
	return err
}

// isReady wants a report of the kubelet that runs now, and takes off the taint that keeps pods away from a new node:
// whoever else would do that is not part of this control plane.
func (w *worker) isReady(ctx context.Context, since time.Time) error {
	nodes := w.machine.options.Kube.CoreV1().Nodes()
	object, err := nodes.Get(ctx, w.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(object.Spec.Taints) > 0 {
		if _, err := nodes.Patch(ctx, w.name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	for _, c := range object.Status.Conditions {
		if c.Type == corev1.NodeReady {
			// Times in the API have whole seconds.
			if c.Status == corev1.ConditionTrue && !c.LastHeartbeatTime.Time.Before(since.Truncate(time.Second)) {
				return nil
			}
			return fmt.Errorf("it is not ready: %s", c.Message)
		}
	}
	return errors.New("it has not reported yet")
}

func (w *worker) await(ctx context.Context, p *program, ask func(context.Context) error) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if !p.isRunning() {
			return fmt.Errorf("%s has ended; the end of its log:\n%s", p.name, tail(p.log))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; the end of its log:\n%s", p.name, err, tail(p.log))
		case <-ticker.C:
		}
	}
}

func (w *worker) stop() {
	for _, p := range []*program{w.kubelet, w.containerd} {
		if p != nil {
			p.kill()
		}
	}
}

// Crash ends a node as a power cut does: every process of its pods too, and with them what was mounted.
func (m *Machine) Crash(ctx context.Context, name string) error {
	w, ok := m.workers[name]
	if !ok {
		return fmt.Errorf("there is no node %q", name)
	}
	w.stop()
	for _, group := range w.groups() {
		if err := cgroup.Kill(group, endPatience); err != nil {
			return fmt.Errorf("crashing node %s: %w", name, err)
		}
	}
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", m.first.id()))
	if err != nil {
		return fmt.Errorf("crashing node %s: %w", name, err)
	}
	// What a kubelet has put on top of devices holds their mounts.
	if err := free(onTop(usedLoops(), mountedLoops(string(table), w.dir))); err != nil {
		return fmt.Errorf("crashing node %s: %w", name, err)
	}
	points := MountsBelow(string(table), w.dir)
	// Later mounts may lie on earlier ones.
	slices.Reverse(points)
	if len(points) > 0 {
		// At once, whoever still has a socket in there: the driver does, and lives on.
		if out, err := m.run(ctx, "", append([]string{"umount", "--lazy"}, points...)...); err != nil {
			return fmt.Errorf("crashing node %s: %w: %s", name, err, out)
		}
	}
	return nil
}

// Boot starts a node that has crashed.
func (m *Machine) Boot(ctx context.Context, name string) error {
	w, ok := m.workers[name]
	if !ok {
		return fmt.Errorf("there is no node %q", name)
	}
	if err := w.start(ctx); err != nil {
		return fmt.Errorf("booting node %s: %w", name, err)
	}
	return nil
}

// Forget removes a node's objects, so that the API server is as before.
func (m *Machine) Forget(ctx context.Context, name string) error {
	err := m.options.Kube.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing node %s: %w", name, err)
	}
	return nil
}

// MountsBelow lists the mount points below a folder that a process's table of mounts (mountinfo) has.
func MountsBelow(table, dir string) []string {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var points []string
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(unescape.Replace(fields[4]), dir+"/") {
			points = append(points, unescape.Replace(fields[4]))
		}
	}
	return points
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
