// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadRequest(t *testing.T) {
	for _, row := range []struct {
		method, target, body string
		want                 Request
	}{
		{"GET", "/api/v1/persistentvolumes", "", Request{Verb: "list", Resource: "persistentvolumes"}},
		{"GET", "/api/v1/persistentvolumes?watch=true", "", Request{Verb: "watch", Resource: "persistentvolumes"}},
		{"GET", "/api/v1/persistentvolumes?watch=1", "", Request{Verb: "watch", Resource: "persistentvolumes"}},
		{"GET", "/api/v1/persistentvolumes?watch=0", "", Request{Verb: "list", Resource: "persistentvolumes"}},
		{"GET", "/api/v1/persistentvolumes/pv", "", Request{Verb: "get", Resource: "persistentvolumes", Name: "pv"}},
		{"HEAD", "/api/v1/persistentvolumes/pv", "", Request{Verb: "get", Resource: "persistentvolumes", Name: "pv"}},
		{"DELETE", "/api/v1/persistentvolumes/pv", "", Request{Verb: "delete", Resource: "persistentvolumes", Name: "pv"}},
		{"DELETE", "/api/v1/namespaces/n/secrets", "", Request{Verb: "deletecollection", Resource: "secrets", Namespace: "n"}},
		{"GET", "/api/v1/namespaces/n/secrets/s", "", Request{Verb: "get", Resource: "secrets", Namespace: "n", Name: "s"}},
		{"GET", "/api/v1/namespaces/n/secrets?fieldSelector=metadata.name%3Ds&watch=true", "", Request{Verb: "watch", Resource: "secrets", Namespace: "n", Name: "s"}},
		{"GET", "/api/v1/namespaces", "", Request{Verb: "list", Resource: "namespaces"}},
		{"GET", "/api/v1/namespaces/n", "", Request{Verb: "get", Resource: "namespaces", Namespace: "n", Name: "n"}},
		{"PUT", "/api/v1/namespaces/n/finalize", "", Request{Verb: "update", Resource: "namespaces", Namespace: "n", Name: "n", Subresource: "finalize"}},
		{
			"PATCH", "/apis/snapshot.storage.k8s.io/v1/namespaces/n/volumesnapshots/s/status", "{}",
			Request{Verb: "patch", Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots", Namespace: "n", Name: "s", Subresource: "status"},
		},
		{
			"POST", "/apis/storage.k8s.io/v1/namespaces/n/csistoragecapacities", `{"metadata":{"generateName":"csisc-"}}`,
			Request{Verb: "create", Group: "storage.k8s.io", Resource: "csistoragecapacities", Namespace: "n", Name: "csisc-"},
		},
		{"POST", "/api/v1/persistentvolumes", `{"metadata":{"name":"pv"}}`, Request{Verb: "create", Resource: "persistentvolumes", Name: "pv"}},
		{"POST", "/api/v1/persistentvolumes", `not an object`, Request{Verb: "create", Resource: "persistentvolumes"}},
		{"GET", "/apis/storage.k8s.io/v1", "", Request{Verb: "get"}},
		{"GET", "/apis", "", Request{Verb: "get"}},
		{"GET", "/api/v1", "", Request{Verb: "get"}},
		{"GET", "/version", "", Request{Verb: "get"}},
		{"GET", "/", "", Request{Verb: "get"}},
	} {
		t.Run(row.method+" "+row.target, func(t *testing.T) {
			r := httptest.NewRequest(row.method, row.target, strings.NewReader(row.body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("User-Agent", "a/1")
			row.want.Agent, row.want.Path = "a/1", r.URL.Path
			got := readRequest(r, []byte(row.body))
			got.Arrived = time.Time{}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestIsWrite(t *testing.T) {
	for target, want := range map[string]bool{
		"/api/v1/namespaces/n/configmaps":                        true,
		"/api/v1/persistentvolumes":                              true,
		"/api/v1/namespaces/n/events":                            false,
		"/apis/events.k8s.io/v1/namespaces/n/events":             false,
		"/apis/coordination.k8s.io/v1/namespaces/n/leases":       false,
		"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": false,
		"/apis/authentication.k8s.io/v1/selfsubjectreviews":      false,
		"/api/v1/namespaces/n/serviceaccounts/s/token":           false,
		"/version": false,
		"/apis/snapshot.storage.k8s.io/v1/namespaces/n/volumesnapshots": true,
	} {
		if got := readRequest(httptest.NewRequest("POST", target, nil), nil).IsWrite(); got != want {
			t.Errorf("POST %s is a write: %v, want %v", target, got, want)
		}
		if readRequest(httptest.NewRequest("GET", target, nil), nil).IsWrite() {
			t.Errorf("GET %s is a write", target)
		}
	}
}

func TestMatch(t *testing.T) {
	q := Request{Verb: "patch", Resource: "volumesnapshots", Subresource: "status", Namespace: "n", Name: "snap-1", Agent: "snapshotter/v1"}
	for _, row := range []struct {
		match Match
		want  bool
	}{
		{Match{}, true},
		{Match{Verb: "patch"}, true},
		{Match{Verb: AnyWrite}, true},
		{Match{Verb: "create"}, false},
		{Match{Resource: "volumesnapshots"}, true},
		{Match{Resource: "volumesnapshotcontents"}, false},
		{Match{Subresource: "status"}, true},
		{Match{Subresource: NoSubresource}, false},
		{Match{Namespace: "n"}, true},
		{Match{Namespace: "m"}, false},
		{Match{Name: "nap"}, true},
		{Match{Name: "snap-2"}, false},
		{Match{Agent: "snapshotter"}, true},
		{Match{Agent: "provisioner"}, false},
		{Match{Only: func(q Request) bool { return q.Key() == "n/snap-1" }}, true},
		{Match{Only: func(Request) bool { return false }}, false},
		{Match{Verb: "patch", Resource: "volumesnapshots", Name: "nowhere"}, false},
	} {
		if got := row.match.matches(q); got != row.want {
			t.Errorf("%+v matches: %v, want %v", row.match, got, row.want)
		}
	}
	if (Match{Verb: AnyWrite}).matches(Request{Verb: "patch", Group: "coordination.k8s.io", Resource: "leases"}) {
		t.Error("a lease is taken for a write that matters")
	}
}
