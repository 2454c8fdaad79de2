// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// await waits for another goroutine; how long it takes is not what is tested.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in 30 s", what)
		}
	}
}

// heard collects changes as text.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) add(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line)
}

func (h *heard) has(line string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains("\n"+strings.Join(h.lines, "\n")+"\n", "\n"+line+"\n")
}

func listen[T kube.Object](informer *kube.Informer[T]) *heard {
	h := &heard{}
	informer.OnChange(func(change kube.Change[T]) {
		switch obj := change.Object(); {
		case change.Deleted:
			h.add("gone " + obj.GetName())
		case any(change.Old) == any(*new(T)):
			h.add("new " + obj.GetName())
		default:
			h.add("changed " + obj.GetName() + " " + obj.GetLabels()["a"])
		}
	})
	return h
}

// run runs an informer until the test ends.
func run(t *testing.T, informer kube.Runner) {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.New(nil)))
	done := make(chan struct{})
	go func() { defer close(done); informer.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func TestInformerFollowsTheServer(t *testing.T) {
	h := kit.New(t)
	claim := kit.With(kit.Claim("old"), func(o metav1.Object) {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "somebody"}})
	})
	h.Put(claim)
	informer := kube.NewInformer(h.API, kube.InformerOptions[*corev1.PersistentVolumeClaim]{
		Indexes: kube.ClaimIndexes(), Trim: func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = nil },
	})
	events := listen(informer)
	if informer.HasSynced() || informer.Explain() != "waiting for the first list of persistentvolumeclaims" {
		t.Errorf("before the run: %v, %q", informer.HasSynced(), informer.Explain())
	}
	run(t, informer)
	await(t, "the first list", informer.HasSynced)
	if informer.Explain() != "" || informer.Resource().Plural != "persistentvolumeclaims" {
		t.Errorf("synced, but says %q of %v", informer.Explain(), informer.Resource())
	}
	key := kube.KeyOf(claim)
	kept, ok := informer.Lookup(key)
	if !ok || kept.ManagedFields != nil || kept.Spec.AccessModes != nil || kept.Spec.StorageClassName == nil {
		t.Errorf("kept %+v", kept)
	}
	await(t, "the old object", func() bool { return events.has("new old") })

	h.Put(kit.Claim("bound", kit.BoundTo("pv")))
	await(t, "a new object", func() bool { return events.has("new bound") })
	if got := informer.ByIndex(kube.ByVolume, "pv"); len(got) != 1 {
		t.Errorf("by index: %v", got)
	}
	kit.Edit(h.API, key, label)
	await(t, "a change", func() bool { return events.has("changed old b") })
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, key)
	await(t, "the end", func() bool { return events.has("gone old") })
	if _, ok := informer.Lookup(key); ok {
		t.Error("a deleted object is still there")
	}
}

func TestInformerForgetsOwnWritesThatTheWatchHasPassed(t *testing.T) {
	h := kit.New(t)
	claim := stored(t, h, kit.Claim("data"))
	informer := kube.NewInformer(h.API, kube.InformerOptions[*corev1.PersistentVolumeClaim]{})
	run(t, informer)
	await(t, "the first list", informer.HasSynced)
	written, err := kube.Patch(t.Context(), h.API, claim, label)
	if err != nil {
		t.Fatal(err)
	}
	key := kube.KeyOf(claim)
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, key)
	await(t, "the end", func() bool { return len(informer.All()) == 0 })
	h.Put(kit.Claim("later"))
	await(t, "a later object", func() bool {
		// The answer to our write arrives only now.
		informer.Assume(written)
		_, ok := informer.Lookup(key)
		return len(informer.All()) == 1 && !ok
	})
}

func TestInformerSurvivesBrokenAndExpiredWatches(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.Claim("one"), kit.Claim("two"))
	informer := kube.NewInformer(h.API, kube.InformerOptions[*corev1.PersistentVolumeClaim]{Namespace: kit.Namespace})
	events := listen(informer)
	run(t, informer)
	await(t, "the first list", informer.HasSynced)
	// Nobody watches while one object goes and the past is forgotten: a list must find out.
	release := h.API.Deny("watch", "persistentvolumeclaims")
	releaseList := h.API.Deny("list", "persistentvolumeclaims")
	h.API.BreakWatches()
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "one"})
	h.Put(kit.Claim("three"))
	h.API.Compact()
	release()
	releaseList()
	await(t, "the missed deletion", func() bool { return events.has("gone one") })
	await(t, "the missed creation", func() bool { return events.has("new three") })
	h.API.BreakWatches()
	h.Put(kit.Claim("four"))
	await(t, "a change after a broken watch", func() bool { return events.has("new four") })
}

func TestInformerExplainsWhyItDoesNotSync(t *testing.T) {
	h := kit.New(t)
	h.API.Deny("watch", "volumesnapshotcontents")
	h.API.Deny("list", "volumesnapshotcontents")
	informer := kube.NewInformer(h.API, kube.InformerOptions[*kube.Content]{})
	run(t, informer)
	await(t, "an explanation", func() bool {
		return strings.HasPrefix(informer.Explain(), "cannot list or watch volumesnapshotcontents.snapshot.storage.k8s.io: ") &&
			strings.Contains(informer.Explain(), "forbidden")
	})
}

// A cluster without a CRD answers a path that it does not know with plain text. Who reads the message should know
// what to install.
func TestInformerNamesAKindThatIsMissing(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	client, err := kube.NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	informer := kube.NewInformer(client, kube.InformerOptions[*kube.Content]{})
	run(t, informer)
	const want = "the cluster does not have volumesnapshotcontents.snapshot.storage.k8s.io: its CustomResourceDefinition is missing, or too old to serve v1"
	await(t, want, func() bool { return informer.Explain() == want })
}

func TestInformerNarrowsItsWatch(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.With(kit.Claim("mine"), kit.Labels(map[string]string{"mine": "yes"})), kit.Claim("other"))
	informer := kube.NewInformer(h.API, kube.InformerOptions[*corev1.PersistentVolumeClaim]{LabelSelector: "mine=yes"})
	run(t, informer)
	await(t, "the first list", informer.HasSynced)
	h.Put(kit.With(kit.Claim("also-mine"), kit.Labels(map[string]string{"mine": "yes"})))
	await(t, "the next one", func() bool { return len(informer.All()) == 2 })
}
