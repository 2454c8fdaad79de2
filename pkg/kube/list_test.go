// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// pages is an API server that gives its claims in pages, whose watches end when they are told to.
type pages struct {
	kube.Client

	mu     sync.Mutex
	claims []string
	// fails says which question for a page is not answered, counted from 1.
	fails map[int]error
	// held is the question that waits until goOn is closed.
	held int
	goOn chan struct{}
	// asked are the questions: the limit, and where to go on.
	asked []string
	// versions are those of objects that are not as they were.
	versions map[string]string
	watches  []*watch.FakeWatcher
	from     []string
}

func (p *pages) List(_ context.Context, _ kube.Resource, _ string, o metav1.ListOptions) (kruntime.Object, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, fmt.Sprintf("limit %d version %q from %q", o.Limit, o.ResourceVersion, o.Continue))
	if err := p.fails[len(p.asked)]; err != nil {
		return nil, err
	}
	if p.held == len(p.asked) {
		p.mu.Unlock()
		<-p.goOn
		p.mu.Lock()
	}
	begin, _ := strconv.Atoi(o.Continue)
	end := len(p.claims)
	if o.Limit > 0 {
		end = min(begin+int(o.Limit), end)
	}
	list := &corev1.PersistentVolumeClaimList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(10_000 + begin)}}
	if end < len(p.claims) {
		list.Continue = fmt.Sprint(end)
	}
	for i, name := range p.claims[begin:end] {
		list.Items = append(list.Items, corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: cmp.Or(p.versions[name], fmt.Sprint(1+begin+i))},
		})
	}
	return list, nil
}

func (p *pages) Watch(_ context.Context, _ kube.Resource, _ string, o metav1.ListOptions) (watch.Interface, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := watch.NewFake()
	p.watches, p.from = append(p.watches, w), append(p.from, o.ResourceVersion)
	return w, nil
}

// expire ends the n-th watch, whose place the server does not remember any more.
func (p *pages) expire(t *testing.T, n int) {
	t.Helper()
	await(t, "a watch", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.watches) > n
	})
	status := apierrors.NewResourceExpired("too old resource version").Status()
	p.watches[n].Error(&status)
}

func (p *pages) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

func newPages(n int) *pages {
	p := &pages{fails: map[int]error{}, goOn: make(chan struct{})}
	for i := range n {
		p.claims = append(p.claims, fmt.Sprintf("c-%04d", i))
	}
	return p
}

// All pages of a list are asked for one after the other, and the watch begins where the first one was. Catches a list
// that ends with its first page, which would tell the end of all other objects, and a watch that misses what happened
// while later pages came.
func TestListsComeInPages(t *testing.T) {
	p := newPages(1203)
	informer := kube.NewInformer(p, kube.InformerOptions[*corev1.PersistentVolumeClaim]{Packed: true})
	run(t, informer)
	await(t, "the list", informer.HasSynced)
	await(t, "the watch", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.from) == 1 })
	if n := len(informer.All()); n != 1203 {
		t.Errorf("%d objects of 1203", n)
	}
	want := []string{`limit 500 version "" from ""`, `limit 500 version "" from "500"`, `limit 500 version "" from "1000"`}
	if d := gocmp.Diff(want, p.asked) + gocmp.Diff([]string{"10000"}, p.from); d != "" {
		t.Error(d)
	}
}

// A list that breaks off after some pages ends nothing: what is on the missing ones is still there, and what came on
// the others counts once. After a whole list that is gone which is not in it. Catches ends that are told of half a list,
// and objects that are told as new with each try.
func TestBrokenListEndsNothing(t *testing.T) {
	p := newPages(1203)
	informer := kube.NewInformer(p, kube.InformerOptions[*corev1.PersistentVolumeClaim]{Packed: true})
	events := listen(informer)
	run(t, informer)
	await(t, "the list", informer.HasSynced)
	p.change(func() {
		p.claims = slices.DeleteFunc(p.claims, func(name string) bool { return name == "c-0007" || name == "c-1100" })
		p.claims = append(p.claims, "late")
		expired, broken := apierrors.NewResourceExpired("the pages are not kept any more"), apierrors.NewInternalError(context.DeadlineExceeded)
		p.fails = map[int]error{len(p.asked) + 2: expired, len(p.asked) + 3: broken}
		p.held = len(p.asked) + 6 // the last page after a whole list was tried
	})
	p.expire(t, 0)
	await(t, "the last page", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.asked) == p.held })
	if events.has("gone c-0007") || events.has("gone c-1100") || !informer.HasSynced() {
		t.Error("the end of an object is told before a list was whole")
	}
	close(p.goOn)
	await(t, "the end of what is gone", func() bool { return events.has("gone c-0007") && events.has("gone c-1100") })
	events.mu.Lock()
	defer events.mu.Unlock()
	count := map[string]int{}
	for _, line := range events.lines {
		count[line]++
	}
	if count["new late"] != 1 || count["new c-0008"] != 1 || len(informer.All()) != 1202 {
		t.Errorf("late %d times, c-0008 %d times, %d objects", count["new late"], count["new c-0008"], len(informer.All()))
	}
}

// A server that forgets a state before its last page is asked for gives all at once. Catches a list that begins with its first page
// again and again, and an informer that is never filled.
func TestPagesThatExpire(t *testing.T) {
	p := newPages(1203)
	for n := range 100 {
		p.fails[2+2*n] = apierrors.NewResourceExpired("the pages are not kept any more")
	}
	informer := kube.NewInformer(p, kube.InformerOptions[*corev1.PersistentVolumeClaim]{Packed: true})
	run(t, informer)
	await(t, "the list", informer.HasSynced)
	want := []string{`limit 500 version "" from ""`, `limit 500 version "" from "500"`, `limit 0 version "" from ""`}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := gocmp.Diff(want, p.asked); d != "" || len(informer.All()) != 1203 {
		t.Error(len(informer.All()), d)
	}
}

// Between two pages an own write of an object on a later one is still shown, also when the first page has newer objects. Catches
// a cache that takes every version for proof that all before it is there, and a room that does its work again for what it has just written.
func TestOwnWriteBetweenPages(t *testing.T) {
	for name, isEarlier := range map[string]bool{"before the list": true, "during the list": false} {
		t.Run(name, func(t *testing.T) {
			p := newPages(1203)
			informer := kube.NewInformer(p, kube.InformerOptions[*corev1.PersistentVolumeClaim]{Packed: true})
			run(t, informer)
			await(t, "the list", informer.HasSynced)
			own := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c-1100", ResourceVersion: "11000"}}
			shown := func() string {
				got, _ := informer.Lookup(kube.KeyOf(own))
				return got.ResourceVersion
			}
			if isEarlier {
				informer.Assume(own)
			}
			p.change(func() {
				p.versions = map[string]string{"c-1100": "11000", "c-0001": "12000"}
				p.held = len(p.asked) + 2
			})
			p.expire(t, 0)
			await(t, "the second page", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.asked) == p.held })
			if !isEarlier {
				informer.Assume(own)
			}
			if got := shown(); got != "11000" {
				t.Errorf("between two pages version %s is shown of what an own write has made 11000", got)
			}
			close(p.goOn)
			await(t, "the last page", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.from) == 2 })
			if got := shown(); got != "11000" {
				t.Errorf("after the list version %s is shown", got)
			}
		})
	}
}

// The pages of a list are one request to the limit that a user has set. Catches a start of a large cluster's
// sidecar at five pages a second.
func TestPagesAreOneRequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`))
	}))
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := kube.NewClient(&rest.Config{Host: server.URL, Transport: transport, QPS: 0.0001, Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	nodes := kube.ResourceOf[*corev1.Node]()
	for page := range 5 {
		options := metav1.ListOptions{Limit: 500}
		if page > 0 {
			options.Continue = fmt.Sprint(page)
		}
		if _, err := client.List(ctx, nodes, "", options); err != nil {
			t.Fatalf("page %d: %v", page, err)
		}
	}
}
