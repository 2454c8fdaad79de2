// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// owned puts a name, a UID and a controller on an object of the walk.
func owned[T kube.Object](obj T, name string, by *metav1.OwnerReference) T {
	obj.SetNamespace(kit.Namespace)
	obj.SetName(name)
	obj.SetUID(kit.UIDOf("x", "", name, 0))
	if by != nil {
		obj.SetOwnerReferences([]metav1.OwnerReference{*by})
	}
	return obj
}

func controlledBy(version, kind, name string) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: kit.UIDOf("x", "", name, 0), Controller: kit.Ptr(true), BlockOwnerDeletion: kit.Ptr(true)}
}

func TestFetchOwner(t *testing.T) {
	deployed := []kube.Object{
		owned(&kube.Pod{}, "pod", controlledBy("apps/v1", "ReplicaSet", "set")),
		owned(&kube.ReplicaSet{}, "set", controlledBy("apps/v1", "Deployment", "deployment")),
		owned(&kube.Deployment{}, "deployment", nil),
	}
	stateful := []kube.Object{
		owned(&kube.Pod{}, "pod", controlledBy("apps/v1", "StatefulSet", "set")),
		owned(&kube.StatefulSet{}, "set", controlledBy("example.com/v1", "Storage", "storage")),
	}
	daemon := []kube.Object{
		owned(&kube.Pod{}, "pod", controlledBy("apps/v1", "DaemonSet", "set")),
		owned(&kube.DaemonSet{}, "set", controlledBy("example.com/v1", "Storage", "storage")),
	}
	lone := []kube.Object{owned(&kube.Pod{}, "pod", nil)}
	strange := []kube.Object{owned(&kube.Pod{}, "pod", controlledBy("example.com/v1", "Clone", "clone"))}
	replaced := []kube.Object{deployed[0], owned(&kube.ReplicaSet{}, "set", nil)}
	replaced[1].SetUID("another")
	for _, c := range []struct {
		name     string
		level    int
		world    []kube.Object
		want     string // kind and name
		says     string
		hopeless bool
	}{
		{name: "T94 none", level: -1},
		{name: "T94 the pod", level: 0, world: lone, want: "v1 Pod pod"},
		{name: "T94 a StatefulSet, by its reference alone", level: 1, world: stateful[:1], want: "apps/v1 StatefulSet set"},
		{name: "T94 a Deployment", level: 2, world: deployed[:2], want: "apps/v1 Deployment deployment"},
		{name: "what stands behind a StatefulSet", level: 2, world: stateful, want: "example.com/v1 Storage storage"},
		{name: "what stands behind a DaemonSet", level: 2, world: daemon, want: "example.com/v1 Storage storage"},
		{name: "T94 a pod without owner", level: 1, world: lone, hopeless: true,
			says: "--capacity-ownerref-level=1, but after 0 of these steps Pod default/pod has no controlling owner, cannot unwind the ownership further"},
		{name: "T94 one level too many", level: 3, world: deployed, hopeless: true,
			says: "after 2 of these steps Deployment default/deployment has no controlling owner, cannot unwind the ownership further"},
		{name: "no pod", level: 0, hopeless: true, says: "reading pod default/pod, which NAMESPACE and POD_NAME name: "},
		{name: "a kind that is not read", level: 2, world: strange, hopeless: true, says: "the owners of a Clone of example.com/v1 cannot be read"},
		{name: "a ReplicaSet that is not there yet", level: 2, world: deployed[:1], says: "reading ReplicaSet default/set: "},
		{name: "a namesake", level: 2, world: replaced, says: "ReplicaSet default/set is not the one that the pod has come from"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(c.world...)
			owner, err := FetchOwner(h.Ctx, h.API, kube.Key{Namespace: kit.Namespace, Name: "pod"}, c.level)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) || fault.IsTerminal(err) != c.hopeless {
					t.Errorf("got %v", err)
				}
				return
			}
			switch {
			case err != nil:
				t.Fatal(err)
			case c.want == "" && owner == nil:
				return
			}
			name := strings.Fields(c.want)
			want := &metav1.OwnerReference{APIVersion: name[0], Kind: name[1], Name: name[2], UID: kit.UIDOf("x", "", name[2], 0), Controller: kit.Ptr(true)}
			if d := cmp.Diff(want, owner); d != "" {
				t.Error(d)
			}
		})
	}
}

// PW-16: the objects of an earlier deployment get the new owner instead of a second one.
func TestFormerOwner(t *testing.T) {
	h := world(t, "a")
	h.Put(owned(&kube.Pod{}, "pod", controlledBy("apps/v1", "StatefulSet", "old")))
	level := func(o *Options, _ *Deps) { o.OwnerLevel = 1 }
	start(h, level)
	h.Settle()
	kit.Edit(h.API, kube.Key{Namespace: kit.Namespace, Name: "pod"}, func(p *kube.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*controlledBy("apps/v1", "DaemonSet", "new")}
	})
	h.Restart()
	start(h, level)
	h.Settle()
	object := kit.All[*storagev1.CSIStorageCapacity](h.API)[0]
	if len(object.OwnerReferences) != 1 || object.OwnerReferences[0].Name != "new" {
		t.Errorf("PW-16: %v", object.OwnerReferences)
	}
	h.Restart()
	h.Log.Clear()
	start(h) // level -1
	h.Settle()
	did(t, h, "T94 level -1 keeps the owner", "driver GetCapacity zone=a → OK")
}

// An API server that is away, or a right that is not there yet, is waited for.
func TestOwnerIsAwaited(t *testing.T) {
	h := kit.New(t)
	h.Put(owned(&kube.Pod{}, "pod", nil))
	release := h.API.Deny("get", "pods")
	options := NewOptions()
	options.OwnerLevel = 0
	c := New(*options, Deps{Client: h.API, Clock: h.Clock, Namespace: kit.Namespace, Pod: "pod", RetryStart: h.RetryStart, RetryMax: h.RetryMax})
	found := make(chan *metav1.OwnerReference)
	go func() {
		owner, _ := c.awaitOwner(h.Ctx)
		found <- owner
	}()
	for !h.Clock.HasWaiters() {
		runtime.Gosched()
	}
	release()
	h.Clock.Step(h.RetryMax)
	if owner := <-found; owner == nil || owner.Name != "pod" {
		t.Error(owner)
	}
	ctx, cancel := context.WithCancel(h.Ctx)
	cancel()
	if _, err := c.awaitOwner(ctx); err == nil {
		t.Error("an owner was found when the process was ending")
	}
}
