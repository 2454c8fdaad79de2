// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// B053: at the highest verbosity client-go logs whole answers. This would catch a fetch of secrets with
// the caller's logger.
func TestSecretsStayOutOfTheLog(t *testing.T) {
	const canary = "s3cr3t-c4n4ry"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "key"}, StringData: map[string]string{"plain": canary},
			Data: map[string][]byte{"key": []byte(canary)},
		}
		if strings.Contains(r.URL.Path, "persistentvolumes") {
			answer = &corev1.PersistentVolume{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "logged"},
			}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	client, err := kube.NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	logger := funcr.New(func(_, line string) { log.WriteString(line + "\n") }, funcr.Options{Verbosity: 10})
	ctx := klog.NewContext(t.Context(), logger)
	data, err := kube.FetchSecret(ctx, client, kube.Key{Namespace: "ns", Name: "key"})
	if err != nil || data["key"] != canary {
		t.Fatalf("got %v, %v", data, err)
	}
	if _, err := kube.Fetch[*corev1.PersistentVolume](ctx, client, kube.Key{Name: "logged"}); err != nil {
		t.Fatal(err)
	}
	// Only a log that holds other answers proves anything by not holding this one.
	if !strings.Contains(log.String(), "logged") {
		t.Fatalf("the log does not show answers at all:\n%s", log.String())
	}
	for _, form := range []string{canary, "czNjcjN0LWM0bjRyeQ"} {
		if strings.Contains(log.String(), form) {
			t.Errorf("the secret is in the log:\n%s", log.String())
		}
	}
}
