// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func TestFetchSecret(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.Secret("login", map[string]string{"user": "u", "password": "p"}))
	got, err := kube.FetchSecret(h.Ctx, h.API, kube.Key{Namespace: kit.Namespace, Name: "login"})
	if diff := cmp.Diff(map[string]string{"user": "u", "password": "p"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if got, err := kube.FetchSecret(h.Ctx, h.API, kube.Key{}); got != nil || err != nil {
		t.Errorf("no key: %v, %v", got, err)
	}
	_, err = kube.FetchSecret(h.Ctx, h.API, kube.Key{Namespace: "ns", Name: "none"})
	if err == nil || !strings.HasPrefix(err.Error(), "error getting secret none in namespace ns: ") || !apierrors.IsNotFound(err) {
		t.Errorf("missing: %v", err)
	}
	if err = kube.FetchSecretIsThere(h.Ctx, h.API, kube.Key{Namespace: "ns", Name: "none"}); err == nil || !strings.HasPrefix(err.Error(), "error getting secret none in namespace ns: ") || !apierrors.IsNotFound(err) {
		t.Errorf("missing, and only asked for: %v", err)
	}
	h.API.Fail("get", "secrets", errors.New("connection refused"), 1)
	if _, err = kube.FetchSecret(h.Ctx, h.API, kube.Key{Namespace: "ns", Name: "none"}); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("an answer that did not come was taken for one: %v", err)
	}
}
