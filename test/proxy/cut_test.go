// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// childVariable makes the test program a client of both proxies, which is what it reads from it.
const childVariable = "CSI_TANDEM_PROXY_CHILD"

type child struct {
	Kubeconfig string
	Socket     string
	// Parallel does everything at once.
	Parallel int
}

// walk is what a child does, one effect after the other, each on the server that it is noted for.
var walk = []string{"POST a", "create v", "PATCH a", "delete v", "DELETE a"}

func runChild() int {
	var c child
	err := json.Unmarshal([]byte(os.Getenv(childVariable)), &c)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (c child) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient("unix:"+c.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	maps, driver := client.CoreV1().ConfigMaps("n"), csi.NewControllerClient(connection)
	if c.Parallel > 0 {
		var wait sync.WaitGroup
		for i := range c.Parallel {
			name := fmt.Sprint("a", i)
			wait.Go(func() { _, _ = maps.Create(ctx, configMap(name), metav1.CreateOptions{}) })
			wait.Go(func() { _, _ = driver.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: name}) })
		}
		wait.Wait()
		return nil
	}
	for _, step := range []func() error{
		func() error { _, err := maps.Create(ctx, configMap("a"), metav1.CreateOptions{}); return err },
		func() error { _, err := driver.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: "v"}); return err },
		func() error {
			_, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
			return err
		},
		func() error { _, err := driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "v"}); return err },
		func() error { return maps.Delete(ctx, "a", metav1.DeleteOptions{}) },
	} {
		if err := step(); err != nil {
			return c.leave(maps, err)
		}
	}
	return nil
}

// leave does a last write, as a process does that is asked to end.
func (c child) leave(maps interface {
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}, why error) error {
	return errors.Join(why, maps.Delete(context.Background(), "last", metav1.DeleteOptions{}))
}

// both are the two proxies with one counter, and a process behind them.
type both struct {
	api     *bench
	driver  *driverBench
	counter *Counter

	// A child may be at its cut before starting it has returned.
	mu    sync.Mutex
	child *exec.Cmd
	out   bytes.Buffer
}

func (b *both) start(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.child.Start(); err != nil {
		t.Fatal(err)
	}
}

// run starts the child, and waits for its end without holding it up.
func (b *both) run(t *testing.T) error {
	t.Helper()
	b.start(t)
	return b.child.Wait()
}

func (b *both) signal(t *testing.T, s os.Signal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.child.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

func newBoth(t *testing.T, c child) *both {
	t.Helper()
	b := &both{api: newBench(t), driver: newDriverBench(t), counter: NewCounter()}
	b.api.api.UseCounter(b.counter, "child")
	b.driver.driver.UseCounter(b.counter, "child")
	b.api.server.objects[filepath.Join(maps, "last")] = stored{"application/json", []byte(`{"metadata":{"name":"last"}}`)}
	var err error
	if c.Kubeconfig, err = b.api.api.Kubeconfig(t.TempDir(), token); err != nil {
		t.Fatal(err)
	}
	c.Socket = b.driver.driver.Socket()
	content, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	b.child = exec.CommandContext(soon(t), os.Args[0])
	b.child.Env = append(os.Environ(), childVariable+"="+string(content))
	b.child.Stdout, b.child.Stderr = &b.out, &b.out
	return b
}

// done is what happened at both servers, without the order between them.
func (b *both) done() []string {
	return sorted(append(b.api.server.effects(), b.driver.fake.effects()...))
}

func sorted(steps []string) []string {
	all := append([]string{}, steps...)
	slices.Sort(all)
	return all
}

func (b *both) kill(t *testing.T) func(Effect) {
	return func(e Effect) {
		if e.Client != "child" {
			t.Errorf("cut at an effect of %q", e.Client)
		}
		b.signal(t, os.Kill)
		_ = b.child.Wait()
	}
}

// Each effect of a walk over both proxies is cut on both sides. A proxy that sent the request before the cut, or let
// another effect slip through while the process dies, fails here.
func TestKillAroundEveryEffect(t *testing.T) {
	for n := 1; n <= len(walk); n++ {
		for _, when := range []When{BeforeSent, AfterEffect} {
			t.Run(fmt.Sprintf("%d %s", n, when), func(t *testing.T) {
				b := newBoth(t, child{})
				cut := b.counter.CutAt(n, when, b.kill(t))
				b.start(t)
				select {
				case e := <-cut:
					if e.Number != n || (e.Answer == "") != (when == BeforeSent) {
						t.Errorf("cut at %v", e)
					}
				case <-soon(t).Done():
					t.Fatal("the effect was never reached")
				}
				want := walk[:n]
				if when == BeforeSent {
					want = walk[:n-1]
				}
				if diff := cmp.Diff(sorted(want), b.done()); diff != "" {
					t.Errorf("at the servers (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// With many workers, exactly the effects up to the cut one happen, whichever they are.
func TestKillInAStorm(t *testing.T) {
	for _, when := range []When{BeforeSent, AfterEffect} {
		t.Run(when.String(), func(t *testing.T) {
			const n = 11
			b := newBoth(t, child{Parallel: 20})
			cut := b.counter.CutAt(n, when, b.kill(t))
			b.start(t)
			select {
			case <-cut:
			case <-soon(t).Done():
				t.Fatal("the effect was never reached")
			}
			// Writes that were let through before the cut may still be on their way, and are not lost with the client.
			writes := 0
			for _, e := range b.counter.Effects() {
				if e.Kind != "" && !(e.Number == n && when == BeforeSent) {
					writes++
				}
			}
			ctx := soon(t)
			for len(b.api.server.effects()) < writes && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			if got := len(b.api.server.effects()); got != writes {
				t.Errorf("the API server did %d things, want %d", got, writes)
			}
			if err := b.api.api.Close(); err != nil {
				t.Error(err)
			}
			if err := b.driver.driver.Close(); err != nil {
				t.Error(err)
			}
			if got := b.counter.Count(); got != n {
				t.Errorf("%d effects were let through, want %d", got, n)
			}
			// Calls to the driver are cancelled with the client, as without a proxy.
			if got := len(b.done()); got > n || when == BeforeSent && got > n-1 {
				t.Errorf("the servers did %d things", got)
			}
		})
	}
}

// A process that is asked to end can do its last writes, and never sees the answer that was cut.
func TestTermAroundAnEffect(t *testing.T) {
	for _, when := range []When{BeforeSent, AfterEffect} {
		for _, n := range []int{1, 2} {
			t.Run(fmt.Sprintf("%d %s", n, when), func(t *testing.T) {
				b := newBoth(t, child{})
				b.counter.CutAt(n, when, func(Effect) { b.signal(t, syscall.SIGTERM) })
				if err := b.run(t); err == nil || !strings.Contains(b.out.String(), "cancel") {
					t.Errorf("ended with %v and said %s, want it to say that its call was cancelled", err, &b.out)
				}
				want := append([]string{}, walk[:n]...)
				if when == BeforeSent {
					want = want[:n-1]
				}
				if diff := cmp.Diff(sorted(append(want, "DELETE last")), b.done()); diff != "" {
					t.Errorf("at the servers (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestUncutWalkIsCountedOverBothProxies(t *testing.T) {
	b := newBoth(t, child{})
	if err := b.run(t); err != nil {
		t.Fatalf("%v: %s", err, &b.out)
	}
	var got []string
	for _, e := range b.counter.Effects() {
		got = append(got, e.String())
	}
	want := []string{
		"1: child create configmaps n/a → 201", "2: child CreateVolume v → OK", "3: child patch configmaps n/a → 200",
		"4: child DeleteVolume v → OK", "5: child delete configmaps n/a → 200",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
