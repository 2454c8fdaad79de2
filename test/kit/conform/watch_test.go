// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

var secrets = kube.ResourceOf[*corev1.Secret]()

func labelled(name, value string) *corev1.Secret {
	return kit.With(kit.Secret(name, nil), kit.Labels(map[string]string{"test": value}))
}

func testListAndSelectors(t *testing.T, c kube.Client) {
	create(t, c, labelled("list-b", "list"))
	last := create(t, c, labelled("list-a", "list"))
	names := func(namespace string, options metav1.ListOptions) []string {
		t.Helper()
		answer, err := c.List(t.Context(), secrets, namespace, options)
		if err != nil {
			t.Fatal(err)
		}
		list := answer.(*corev1.SecretList)
		if newer(t, last.ResourceVersion, list.ResourceVersion) {
			t.Errorf("the list has version %s, its object %s", list.ResourceVersion, last.ResourceVersion)
		}
		found := []string{}
		for _, s := range list.Items {
			found = append(found, s.Name)
		}
		return found
	}
	byLabel := metav1.ListOptions{LabelSelector: "test=list"}
	for what, got := range map[string][]string{
		"all namespaces": names("", byLabel), "namespace": names("default", byLabel),
	} {
		if diff := cmp.Diff([]string{"list-a", "list-b"}, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	if got := names("elsewhere", byLabel); len(got) != 0 {
		t.Errorf("another namespace has %v", got)
	}
	if got := names("", metav1.ListOptions{FieldSelector: "metadata.name=list-a"}); len(got) != 1 || got[0] != "list-a" {
		t.Errorf("by field: %v", got)
	}
}

func newer(t *testing.T, a, b string) bool {
	t.Helper()
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	if errX != nil || errY != nil {
		t.Fatalf("versions %q and %q", a, b)
	}
	return x > y
}

// next reads one event as text; versions are returned beside it.
func next(t *testing.T, w watch.Interface) (string, string) {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			return "closed", ""
		}
		if e.Type == watch.Error {
			return fmt.Sprintf("ERROR %v", e.Object.(*metav1.Status).Reason), ""
		}
		obj := e.Object.(metav1.Object)
		if e.Type == watch.Bookmark {
			return "BOOKMARK " + obj.GetAnnotations()[metav1.InitialEventsAnnotationKey], obj.GetResourceVersion()
		}
		return string(e.Type) + " " + obj.GetName() + " " + obj.GetLabels()["test"], obj.GetResourceVersion()
	case <-time.After(20 * time.Second):
		t.Fatal("no event arrived")
		return "", ""
	}
}

func expectEvents(t *testing.T, w watch.Interface, want ...string) (last string) {
	t.Helper()
	for _, line := range want {
		var got string
		got, last = next(t, w)
		if got != line {
			t.Fatalf("event %q, want %q", got, line)
		}
	}
	return last
}

func begin(t *testing.T, c kube.Client, options metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := c.Watch(t.Context(), secrets, "default", options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// Today's client-go starts every informer like this and waits for the bookmark.
func testWatchFromStart(t *testing.T, c kube.Client) {
	create(t, c, labelled("start-a", "start"))
	b := create(t, c, labelled("start-b", "start"))
	w := begin(t, c, metav1.ListOptions{
		LabelSelector: "test=start", SendInitialEvents: kit.Ptr(true), AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	mark := expectEvents(t, w, "ADDED start-a start", "ADDED start-b start", "BOOKMARK true")
	if newer(t, b.ResourceVersion, mark) {
		t.Errorf("the bookmark has version %s, an object before it %s", mark, b.ResourceVersion)
	}
	create(t, c, labelled("start-c", "start"))
	expectEvents(t, w, "ADDED start-c start")
}

func testWatchFromVersion(t *testing.T, c kube.Client) {
	a := create(t, c, labelled("version-a", "version"))
	b := create(t, c, kit.With(labelled("version-b", "version"), kit.Finalizers("example.com/a")))
	w := begin(t, c, metav1.ListOptions{LabelSelector: "test=version", ResourceVersion: a.ResourceVersion})
	expect(t, "delete", remove(t, c, b, nil), "")
	marked := fetch(t, c, b)
	if _, err := kube.Patch(t.Context(), c, marked, func(s *corev1.Secret) { kube.RemoveFinalizer(s, "example.com/a") }); err != nil {
		t.Fatal(err)
	}
	expectEvents(t, w, "ADDED version-b version", "MODIFIED version-b version")
	last := expectEvents(t, w, "DELETED version-b version")
	if !newer(t, last, marked.ResourceVersion) {
		t.Errorf("the deletion has version %s, not above %s", last, marked.ResourceVersion)
	}
	w.Stop()
	for range w.ResultChan() { // a stopped watch ends
	}
}

func testWatchWithSelector(t *testing.T, c kube.Client) {
	a := create(t, c, labelled("selected-a", "selected"))
	w := begin(t, c, metav1.ListOptions{LabelSelector: "test=selected", ResourceVersion: a.ResourceVersion})
	out, err := patch(t.Context(), c, a, "", `{"metadata":{"labels":{"test":"other"}}}`)
	expect(t, "out", err, "")
	back, err := patch(t.Context(), c, a, "", `{"metadata":{"labels":{"test":"selected"}}}`)
	expect(t, "back", err, "")
	// The object that leaves a selection is shown as it was, with the version of the change.
	version := expectEvents(t, w, "DELETED selected-a selected")
	if version != out.ResourceVersion {
		t.Errorf("left at version %s, want %s", version, out.ResourceVersion)
	}
	if version := expectEvents(t, w, "ADDED selected-a selected"); version != back.ResourceVersion {
		t.Errorf("came back at version %s, want %s", version, back.ResourceVersion)
	}
}
