// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"k8s.io/client-go/rest"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// TestWhatCannotExistIsNotThere: what a reference names that no object can be called is certainly not there. Catches a read that
// leaves it open, as the client does that will not send it: whoever waits for an answer then waits for ever.
func TestWhatCannotExistIsNotThere(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++; w.WriteHeader(http.StatusTeapot) }))
	defer server.Close()
	c, err := kube.NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []kube.Key{{}, {Namespace: "default"}, {Name: "x"}, {Namespace: "default", Name: "a/b"}, {Namespace: "default", Name: ".."},
		{Namespace: "a/b", Name: "x"}, {Namespace: "..", Name: "x"}, {Namespace: "a%b", Name: "x"}} {
		if _, err := kube.Fetch[*snapv1.VolumeSnapshot](t.Context(), c, key); !kube.IsGone(err) {
			t.Errorf("snapshot %v: %v", key, err)
		}
	}
	if _, err := kube.Fetch[*kube.Content](t.Context(), c, kube.Key{}); !kube.IsGone(err) {
		t.Errorf("content without a name: %v", err)
	}
	if asked != 0 {
		t.Errorf("the server was asked %d times", asked)
	}
	if _, err := kube.Fetch[*kube.Content](t.Context(), c, kube.Key{Name: "c"}); err == nil || kube.IsGone(err) || asked != 1 {
		t.Errorf("what can exist is not asked for: %v, asked %d times", err, asked)
	}
}
