// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/rest"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// TestFetchServed: an object that is not there and a kind that is not there are two answers, as servers give
// them. Catches one that takes every NotFound for a missing kind, and one that takes a refusal for an answer.
func TestFetchServed(t *testing.T) {
	const noObject = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","details":{"name":"x","group":"storage.k8s.io","kind":"volumeattributesclasses"},"code":404}`
	for name, row := range map[string]struct {
		code     int
		document string
		want     bool
		fails    bool
	}{
		"no such object": {http.StatusNotFound, noObject, true, false},
		"forbidden":      {http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, false, true},
		"broken":         {http.StatusInternalServerError, "", false, true},
		"an object":      {http.StatusOK, `{"kind":"VolumeAttributesClass","apiVersion":"storage.k8s.io/v1","metadata":{"name":"x"}}`, true, false},
	} {
		client, _ := serveREST(t, row.code, row.document)
		got, err := kube.FetchServed[*storagev1.VolumeAttributesClass](t.Context(), client)
		if got != row.want || (err != nil) != row.fails {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	client, err := kube.NewClient(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := kube.FetchServed[*kube.ReferenceGrant](t.Context(), client); got || err != nil {
		t.Errorf("no such kind: %v, %v", got, err)
	}
}

const grantDocument = `{"kind":"ReferenceGrant","apiVersion":"gateway.networking.k8s.io/v1beta1","metadata":{"name":"g","namespace":"ns2","resourceVersion":"3"},
"spec":{"from":[{"group":"","kind":"PersistentVolumeClaim","namespace":"ns1"}],"to":[{"group":"","kind":"PersistentVolumeClaim","name":"src"}]}}`

func TestGrantsTravelAsJSON(t *testing.T) {
	client, a := serveREST(t, http.StatusOK, grantDocument)
	grant, err := kube.Fetch[*kube.ReferenceGrant](t.Context(), client, kube.Key{Namespace: "ns2", Name: "g"})
	if err != nil || len(grant.Spec.From) != 1 || grant.Spec.From[0].Namespace != "ns1" || *grant.Spec.To[0].Name != "src" {
		t.Errorf("%+v, %v", grant, err)
	}
	line, accept, _, _ := a.last()
	if line != "GET /apis/gateway.networking.k8s.io/v1beta1/namespaces/ns2/referencegrants/g" || strings.Contains(accept, "protobuf") {
		t.Errorf("%s, accepting %s", line, accept)
	}
	copied := grant.DeepCopyObject().(*kube.ReferenceGrant)
	copied.Spec.From[0].Namespace, *copied.Spec.To[0].Name, copied.Labels = "x", "x", map[string]string{"a": "b"}
	if grant.Spec.From[0].Namespace != "ns1" || *grant.Spec.To[0].Name != "src" || grant.Labels != nil {
		t.Error("the copy shares with its original")
	}
	list := &kube.ReferenceGrantList{Items: []kube.ReferenceGrant{*grant}}
	again := list.DeepCopyObject().(*kube.ReferenceGrantList)
	again.Items[0].Spec.From[0].Namespace = "x"
	if list.Items[0].Spec.From[0].Namespace != "ns1" {
		t.Error("the copy of a list shares with its original")
	}
	if (*kube.ReferenceGrant)(nil).DeepCopyObject() != kube.Object((*kube.ReferenceGrant)(nil)) {
		t.Error("nothing has a copy")
	}
	if got := kube.GrantIndexes()[kube.ByNamespace](grant); len(got) != 1 || got[0] != "ns2" {
		t.Errorf("found under %q", got)
	}
}
