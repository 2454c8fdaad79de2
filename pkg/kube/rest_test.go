// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

const (
	protobuf = "application/vnd.kubernetes.protobuf"
	jsonType = "application/json"
	merge    = "application/merge-patch+json"
)

// asked is what the server saw last.
type asked struct {
	mu                       sync.Mutex
	line, accept, sent, body string
}

func (a *asked) last() (line, accept, sent, body string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.line, a.accept, a.sent, a.body
}

// serveREST answers everything with one document; code is the HTTP status.
func serveREST(t *testing.T, code int, document string) (kube.Client, *asked) {
	t.Helper()
	a := &asked{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		a.line, a.accept, a.sent, a.body = r.Method+" "+r.URL.String(), r.Header.Get("Accept"), r.Header.Get("Content-Type"), string(body)
		a.mu.Unlock()
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, document)
	}))
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := kube.NewClient(&rest.Config{Host: server.URL, Transport: transport, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client, a
}

const (
	claimDocument    = `{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"name":"data","namespace":"default","resourceVersion":"7"}}`
	snapshotDocument = `{"kind":"VolumeSnapshot","apiVersion":"snapshot.storage.k8s.io/v1","metadata":{"name":"s","resourceVersion":"8"}}`
)

func TestRequestsOfBuiltInKinds(t *testing.T) {
	client, a := serveREST(t, http.StatusOK, claimDocument)
	claim := kit.Claim("data")
	claim.ResourceVersion = "6"
	const item = "/api/v1/namespaces/default/persistentvolumeclaims/data"
	for name, row := range map[string]struct {
		do         func() error
		line, sent string
	}{
		"fetch": {func() error {
			got, err := kube.Fetch[*corev1.PersistentVolumeClaim](t.Context(), client, kube.KeyOf(claim))
			if got.ResourceVersion != "7" || got.Kind != "" {
				t.Errorf("read %v", got)
			}
			return err
		}, "GET " + item, ""},
		"create": {func() error { _, err := kube.Create(t.Context(), client, claim); return err },
			"POST /api/v1/namespaces/default/persistentvolumeclaims", protobuf},
		"patch":        {func() error { _, err := kube.Patch(t.Context(), client, claim, label); return err }, "PATCH " + item, merge},
		"status patch": {func() error { _, err := kube.PatchStatus(t.Context(), client, claim, label); return err }, "PATCH " + item + "/status", merge},
		"delete":       {func() error { return kube.Delete(t.Context(), client, claim) }, "DELETE " + item, protobuf},
	} {
		if err := row.do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		line, accept, sent, _ := a.last()
		if line != row.line || sent != row.sent || accept != protobuf+","+jsonType {
			t.Errorf("%s: %q, accept %q, content %q", name, line, accept, sent)
		}
	}
}

func TestRequestsOfCustomKinds(t *testing.T) {
	client, a := serveREST(t, http.StatusOK, snapshotDocument)
	snapshot := kit.Snapshot("s", "data")
	snapshot.ResourceVersion = "6"
	const item = "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots/s"
	_, err := kube.PatchStatus(t.Context(), client, snapshot, func(s *snapv1.VolumeSnapshot) {
		s.Status = &snapv1.VolumeSnapshotStatus{ReadyToUse: kit.Ptr(true)}
	})
	if err != nil {
		t.Error(err)
	}
	if line, accept, sent, body := a.last(); line != "PATCH "+item+"/status" || accept != jsonType || sent != merge ||
		!strings.Contains(body, `"resourceVersion":"6"`) || !strings.Contains(body, `"readyToUse":true`) {
		t.Errorf("%q, accept %q, content %q: %s", line, accept, sent, body)
	}
	if err := kube.Delete(t.Context(), client, snapshot); err != nil {
		t.Error(err)
	}
	if line, _, sent, body := a.last(); line != "DELETE "+item || sent != jsonType ||
		!strings.Contains(body, `"preconditions":{"uid":"`+string(snapshot.UID)+`","resourceVersion":"6"}`) {
		t.Errorf("%q, content %q: %s", line, sent, body)
	}
	if _, err := kube.Create(t.Context(), client, snapshot); err != nil {
		t.Error(err)
	}
	if line, _, _, body := a.last(); line != "POST "+strings.TrimSuffix(item, "/s") ||
		!strings.Contains(body, `"kind":"VolumeSnapshot"`) || !strings.Contains(body, `"apiVersion":"snapshot.storage.k8s.io/v1"`) {
		t.Errorf("%q: %s", line, body)
	}
}

func TestRequestsForLists(t *testing.T) {
	for _, row := range []struct {
		resource  kube.Resource
		namespace string
		want      string
	}{
		{kube.ResourceOf[*corev1.PersistentVolumeClaim](), "", "/api/v1/persistentvolumeclaims"},
		{kube.ResourceOf[*corev1.PersistentVolumeClaim](), "ns", "/api/v1/namespaces/ns/persistentvolumeclaims"},
		{kube.ResourceOf[*corev1.PersistentVolume](), "", "/api/v1/persistentvolumes"},
		{kube.ResourceOf[*kube.Content](), "", "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents"},
	} {
		list := `{"kind":"` + row.resource.Kind + `List","apiVersion":"` + row.resource.GroupVersion().String() +
			`","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"x"}}]}`
		client, a := serveREST(t, http.StatusOK, list)
		options := metav1.ListOptions{LabelSelector: "a=b", ResourceVersion: "5"}
		got, err := client.List(t.Context(), row.resource, row.namespace, options)
		if err != nil {
			t.Fatal(err)
		}
		if line, _, _, _ := a.last(); line != "GET "+row.want+"?labelSelector=a%3Db&resourceVersion=5" {
			t.Errorf("asked %q", line)
		}
		if n := lengthOf(t, got); n != 1 {
			t.Errorf("%s: %d items", row.resource.Kind, n)
		}
		w, err := client.Watch(t.Context(), row.resource, row.namespace, options)
		if err != nil {
			t.Fatal(err)
		}
		w.Stop()
		if line, _, _, _ := a.last(); line != "GET "+row.want+"?labelSelector=a%3Db&resourceVersion=5&watch=true" {
			t.Errorf("watched %q", line)
		}
	}
}

func lengthOf(t *testing.T, list runtime.Object) int {
	t.Helper()
	switch l := list.(type) {
	case *corev1.PersistentVolumeClaimList:
		return len(l.Items)
	case *corev1.PersistentVolumeList:
		return len(l.Items)
	case *kube.ContentList:
		return len(l.Items)
	}
	t.Fatalf("a list of type %T", list)
	return 0
}

func TestAnswersBecomeAPIErrors(t *testing.T) {
	for code, is := range map[int]func(error) bool{
		http.StatusNotFound: kube.IsGone, http.StatusConflict: kube.IsConflict, http.StatusForbidden: apierrors.IsForbidden,
	} {
		document := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":%q,"code":%d}`,
			strings.ReplaceAll(http.StatusText(code), " ", ""), code)
		client, _ := serveREST(t, code, document)
		if _, err := kube.Patch(t.Context(), client, kit.Claim("data"), label); !is(err) || err.Error() != "no" {
			t.Errorf("%d became %v", code, err)
		}
	}
	// Broken answers are errors, never empty objects.
	client, _ := serveREST(t, http.StatusOK, `{"kind":`)
	if _, err := kube.Fetch[*corev1.PersistentVolumeClaim](t.Context(), client, kube.Key{Namespace: "a", Name: "b"}); err == nil {
		t.Error("half an answer was taken")
	}
	if _, err := kube.NewClient(&rest.Config{Host: "::://"}); err == nil {
		t.Error("a host that is none was taken")
	}
}

// The data of a secret is not even sent to whoever asks only whether it is there. A client that reads the whole and drops
// the data would look the same to its caller.
func TestSecretIsAskedForWithoutItsData(t *testing.T) {
	client, asked := serveREST(t, http.StatusOK, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"creds","namespace":"ns"}}`)
	if err := kube.FetchSecretIsThere(t.Context(), client, kube.Key{Namespace: "ns", Name: "creds"}); err != nil {
		t.Error(err)
	}
	line, accept, _, _ := asked.last()
	if line != "GET /api/v1/namespaces/ns/secrets/creds" || accept != jsonType+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1" {
		t.Errorf("%s, accepting %s", line, accept)
	}
	if err := kube.FetchSecretIsThere(t.Context(), client, kube.Key{}); err != nil {
		t.Error("a secret that nobody names: ", err)
	}
}
