// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/clientset/versioned/typed/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// patience is for one condition, and is far more than any takes on a machine that has other things to do. Whoever works on
// a test that fails may have less of it.
var patience = patienceOf(os.Getenv("CSI_TANDEM_PATIENCE"), 2*time.Minute)

const look = 100 * time.Millisecond

// setup says what is special about a world. The zero value is a driver in two zones and both sidecars with no flags.
type setup struct {
	// name is for a test that has more than one world; it is otherwise the test's.
	name        string
	driver      []string
	provisioner []string
	snapshotter []string
	// withoutSnapshotter is for tests that start their own.
	withoutSnapshotter bool
	// withoutSidecars is for tests that start both later.
	withoutSidecars bool
	// withoutTopology is for a driver whose volumes are everywhere.
	withoutTopology bool
	// cast changes what is started, when the world has its names and nothing runs yet.
	cast func(*world, *stage.Roles)
}

// world is a namespace, a driver and its sidecars, for one test.
type world struct {
	*testing.T
	ctx         context.Context
	stage       *stage.Stage
	cast        *stage.Cast
	script      *control.Client
	kube        kubernetes.Interface
	snaps       snapshotv1.SnapshotV1Interface
	ns          string
	driver      string
	provisioner *stage.Process
	snapshotter *stage.Process
	// others run besides, until all is deleted.
	others []*stage.Process
	// after is done when all is deleted.
	after []func()

	// repeats is how many successful calls of one kind one object may cost; kills cost more.
	repeats int
}

// begin makes a world, and ends it with the test: everything is deleted, and nothing may be left anywhere.
func begin(t *testing.T, s setup) *world {
	t.Helper()
	theStage(t)
	w := &world{T: t, stage: shared.stage, kube: shared.stage.Kube, snaps: shared.stage.Snapshots.SnapshotV1(), repeats: 2}
	// Outlives the test's own context, which ends before the clean-up begins.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w.ctx = ctx
	t.Cleanup(cancel)
	w.ns = freshName(nameOf(cmp.Or(s.name, t.Name())))
	w.driver = w.ns + ".csi.example"
	w.must(w.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}, metav1.CreateOptions{}))
	w.mustNot(shared.stage.Cluster.AwaitNamespace(ctx, w.ns))
	roles := stage.Roles{Name: w.driver, Flags: s.driver, Topology: map[string]map[string]string{"worker-1": {zoneKey: "z1"}, "worker-2": {zoneKey: "z2"}}}
	if s.withoutTopology {
		roles.Topology = nil
	}
	if s.cast != nil {
		s.cast(w, &roles)
	}
	var err error
	w.cast, err = shared.stage.NewCast(ctx, roles)
	w.mustNot(err)
	w.script = w.cast.Control
	t.Cleanup(func() {
		if err := w.cast.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.endOthers)
	t.Cleanup(w.end)
	if s.withoutSidecars {
		return w
	}
	w.provisioner, err = w.cast.StartSidecar(stage.Provisioner, s.provisioner...)
	w.mustNot(err)
	if !s.withoutSnapshotter {
		w.snapshotter, err = w.cast.StartSidecar(stage.Snapshotter, s.snapshotter...)
		w.mustNot(err)
	}
	return w
}

func (w *world) endOthers() {
	for _, p := range w.others {
		for _, death := range p.Deaths() {
			w.Error(death)
		}
		p.Terminate()
	}
	for _, f := range w.after {
		f()
	}
}

// taken are the names of worlds so far: with -count a test makes more than one.
var taken sync.Map

func freshName(name string) string {
	for number := 1; ; number++ {
		candidate := name
		if number > 1 {
			candidate = fmt.Sprint(name, "-", number)
		}
		if _, isTaken := taken.LoadOrStore(candidate, true); !isTaken {
			return candidate
		}
	}
}

// nameOf makes a name for objects from that of a test; a hash keeps two long ones apart.
func nameOf(test string) string {
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(strings.TrimPrefix(test, "Test")))
	if len(name) > 30 {
		sum := fnv.New32a()
		sum.Write([]byte(name))
		name = fmt.Sprintf("%s-%08x", strings.TrimRight(name[:21], "-"), sum.Sum32())
	}
	return name
}

func patienceOf(given string, usual time.Duration) time.Duration {
	if d, err := time.ParseDuration(given); err == nil {
		return d
	}
	return usual
}

// must is for calls of which only the error matters.
func (w *world) must(_ any, err error) {
	w.Helper()
	w.mustNot(err)
}

func (w *world) mustNot(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// rule takes the id of a rule that was added to the driver's script.
func (w *world) rule(id string, err error) string {
	w.Helper()
	w.mustNot(err)
	return id
}

func (w *world) release(rule string) {
	w.Helper()
	w.mustNot(w.script.Release(w.ctx, rule))
}

// await looks again and again until a condition holds. A failed read is a reason to look again.
func (w *world) await(what string, holds func() (bool, string)) {
	w.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(look) {
		done, why := holds()
		if done {
			return
		}
		for _, p := range w.processes() {
			if ends := p.Ends(); len(ends) > 0 {
				w.Fatalf("while waiting until %s: %q, its last words:\n%s", what, ends, p.LogTail(5))
			}
		}
		if time.Now().After(deadline) {
			w.Fatalf("waited for %s until %s: %s", patience, what, why)
		}
	}
}

// processes are those of the cast; a world in which nothing runs has none.
func (w *world) processes() []*stage.Process {
	if w.cast == nil {
		return nil
	}
	return w.cast.Processes()
}

// unreadable is the answer of a condition whose object could not be read.
func unreadable(err error) (bool, string) { return false, err.Error() }
