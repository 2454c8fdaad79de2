// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// Informers of both sorts of kinds must sync and follow, with whatever client-go asks of the server today.
func testInformers(t *testing.T, c kube.Client) {
	follows(t, c, kit.With(kit.Secret("informed", nil), kit.Finalizers("example.com/a")))
	follows(t, c, kit.With(kit.NamedContent("informed"), kit.Finalizers("example.com/a")))
}

func follows[T kube.Object](t *testing.T, c kube.Client, obj T) {
	t.Helper()
	born := create(t, c, obj)
	key := kube.KeyOf(born)
	informer := kube.NewInformer(c, kube.InformerOptions[T]{Namespace: key.Namespace})
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.New(nil)))
	done := make(chan struct{})
	go func() { defer close(done); informer.Run(ctx) }()
	defer func() { cancel(); <-done }()

	await(t, "the first list", informer.HasSynced)
	if seen, ok := informer.Lookup(key); !ok || seen.GetUID() != born.GetUID() {
		t.Fatalf("the list shows %v", seen)
	}
	changed, err := kube.Patch(t.Context(), c, born, func(o T) { o.SetLabels(map[string]string{"a": "b"}) })
	expect(t, "change", err, "")
	informer.Assume(changed)
	if seen, _ := informer.Lookup(key); seen.GetLabels()["a"] != "b" {
		t.Error("the own write is not seen at once")
	}
	expect(t, "delete", remove(t, c, changed, nil), "")
	await(t, "the mark", func() bool { seen, _ := informer.Lookup(key); return seen.GetDeletionTimestamp() != nil })
	marked, _ := informer.Lookup(key)
	last, err := kube.Patch(t.Context(), c, marked, func(o T) { kube.RemoveFinalizer(o, "example.com/a") })
	expect(t, "release", err, "")
	await(t, "the end", func() bool {
		// The answer of the last patch, however late it comes, brings nothing back.
		informer.Assume(last)
		_, ok := informer.Lookup(key)
		return !ok
	})
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in 30 s", what)
		}
	}
}
