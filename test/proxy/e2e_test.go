// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
)

// shared is one real control plane for all tests here.
var shared struct {
	sync.Once
	cluster *controlplane.Cluster
	err     error
}

func closeSharedCluster() {
	if shared.cluster == nil {
		return
	}
	if err := shared.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// realBench is a real API server with the proxy before it, and a client with the token of a service account.
type realBench struct {
	cluster *controlplane.Cluster
	api     *API
	client  kubernetes.Interface
}

func newRealBench(t *testing.T, contentType string) *realBench {
	t.Helper()
	if os.Getenv("CSI_TANDEM_E2E") != "1" {
		t.Skip("starts a real control plane; set CSI_TANDEM_E2E=1 to run it")
	}
	shared.Do(func() {
		shared.cluster, shared.err = controlplane.Start(t.Context(), controlplane.Options{Out: os.Stderr})
		if shared.err == nil {
			shared.err = shared.cluster.ApplyBytes(t.Context(), []byte(account), "default")
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	b := &realBench{cluster: shared.cluster}
	var err error
	if b.api, err = NewAPI(b.cluster.Config()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.api.Close(); err != nil {
			t.Error(err)
		}
	})
	own, err := b.cluster.ServiceAccountConfig(t.Context(), "default", "proxied")
	if err != nil {
		t.Fatal(err)
	}
	config := b.api.Config(&rest.Config{BearerToken: own.BearerToken, QPS: -1, UserAgent: "proxied/1"})
	config.ContentType = contentType
	if b.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeIdle(b.client) })
	return b
}

const account = `apiVersion: v1
kind: ServiceAccount
metadata: {name: proxied}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: proxied}
rules:
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: proxied}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: proxied}
subjects:
- {kind: ServiceAccount, name: proxied, namespace: default}
`

// informer fills a cache through the proxy and tells what it sees arrive.
func (b *realBench) informer(t *testing.T, names chan<- string) cache.SharedIndexInformer {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(b.client, 0, informers.WithNamespace("default"))
	informer := factory.Core().V1().ConfigMaps().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if one, ok := object.(*corev1.ConfigMap); ok {
			names <- one.Name
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(soon(t).Done(), informer.HasSynced) {
		t.Fatal("the cache was not filled")
	}
	return informer
}

func await(t *testing.T, names <-chan string, name string) {
	t.Helper()
	ctx := soon(t)
	for {
		select {
		case got := <-names:
			if got == name {
				return
			}
		case <-ctx.Done():
			t.Fatalf("%s never came", name)
		}
	}
}

func TestRealAPIServer(t *testing.T) {
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(contentType, func(t *testing.T) {
			b := newRealBench(t, contentType)
			maps, prefix := b.client.CoreV1().ConfigMaps("default"), contentType[len(contentType)-4:]
			names := make(chan string, 100)
			informer := b.informer(t, names)

			// The rights are the service account's and not those of the configuration that the proxy was made with.
			if _, err := b.client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("listing what the account may not: %v", err)
			}
			create := func(name string) {
				t.Helper()
				if _, err := maps.Create(t.Context(), configMap(prefix+name), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			create("one")
			await(t, names, prefix+"one")

			held := b.api.HoldWatches(Match{Resource: "configmaps"})
			create("two")
			if err := held.AwaitHits(soon(t), 1); err != nil {
				t.Fatal(err)
			}
			if _, isThere, _ := informer.GetStore().GetByKey("default/" + prefix + "two"); isThere {
				t.Error("the cache is not old")
			}
			held.Release()
			await(t, names, prefix+"two")

			if n := b.api.CutWatches("configmaps"); n != 1 {
				t.Errorf("cut %d watches, want 1", n)
			}
			create("three")
			await(t, names, prefix+"three")

			b.api.FailAfter(Match{Verb: "create", Name: prefix + "four"}, Lost, 1)
			if _, err := maps.Create(t.Context(), configMap(prefix+"four"), metav1.CreateOptions{}); err == nil {
				t.Error("a lost answer arrived")
			}
			await(t, names, prefix+"four")

			if err := b.api.Down(); err != nil {
				t.Fatal(err)
			}
			if _, err := maps.Create(t.Context(), configMap(prefix+"five"), metav1.CreateOptions{}); err == nil {
				t.Error("a server that is down answered")
			}
			if err := b.api.Up(); err != nil {
				t.Fatal(err)
			}
			create("six")
			await(t, names, prefix+"six")
			if sent, conflicts := b.api.Writes(Match{Agent: "proxied/1"}); sent != 5 || conflicts != 0 {
				t.Errorf("counted %d writes and %d conflicts, want 5 and 0", sent, conflicts)
			}
		})
	}
}

func TestRealAPIServerCut(t *testing.T) {
	b := newRealBench(t, runtime.ContentTypeProtobuf)
	maps := b.client.CoreV1().ConfigMaps("default")
	counter := NewCounter()
	b.api.UseCounter(counter, "client")
	for n, when := range map[int]When{1: BeforeSent, 2: AfterEffect} {
		ctx, die := context.WithCancel(t.Context())
		counter.Reset()
		cut := counter.CutAt(1, when, func(Effect) { die() })
		name := fmt.Sprint("cut-", n)
		if _, err := maps.Create(ctx, configMap(name), metav1.CreateOptions{}); err == nil {
			t.Errorf("%s: answered", when)
		}
		if e := <-cut; e.Key != "default/"+name {
			t.Errorf("%s: cut at %v", when, e)
		}
		_, err := b.cluster.Clientset().CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
		if isThere := err == nil; isThere != (when == AfterEffect) || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("%s: the object: %v", when, err)
		}
	}
}
