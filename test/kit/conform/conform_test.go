// SPDX-License-Identifier: Apache-2.0

// Package conform keeps the API server of test/kit honest: the same requests go to it and to a real one,
// and both must answer as the tables here say.
//
// It must not test the project's own code; what passes through it is kube.Client alone.
package conform

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/controlplane"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// suite is everything that both servers must agree on.
var suite = map[string]func(*testing.T, kube.Client){
	"create":              testCreate,
	"lock":                testLock,
	"null and no change":  testNullAndNoChange,
	"status of custom":    testStatusOfCustom,
	"status of built-in":  testStatusOfBuiltIn,
	"unknown fields":      testUnknownFields,
	"finalizers":          testFinalizers,
	"preconditions":       testPreconditions,
	"list and selectors":  testListAndSelectors,
	"watch from start":    testWatchFromStart,
	"watch from version":  testWatchFromVersion,
	"watch with selector": testWatchWithSelector,
	"informers":           testInformers,
	"access review":       testAccessReview,
}

func TestKit(t *testing.T) {
	for name, test := range suite {
		t.Run(name, func(t *testing.T) { test(t, kit.New(t).API) })
	}
}

func TestRealServer(t *testing.T) {
	if os.Getenv("CSI_TANDEM_E2E") != "1" {
		t.Skip("starts a real control plane; set CSI_TANDEM_E2E=1 to run it")
	}
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	}()
	// Controllers would write on the same objects.
	for _, part := range []controlplane.Part{controlplane.ControllerManager, controlplane.Scheduler} {
		if err := cluster.StopPart(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Apply(t.Context(), "../../../deploy/crds"); err != nil {
		t.Fatal(err)
	}
	client, err := kube.NewClient(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range suite {
		t.Run(name, func(t *testing.T) { test(t, client) })
	}
}

// reason is how a server answered, "" for yes.
func reason(err error) string {
	if err == nil {
		return ""
	}
	return string(apierrors.ReasonForError(err))
}

func expect(t *testing.T, what string, err error, want metav1.StatusReason) {
	t.Helper()
	if got := reason(err); got != string(want) || (err == nil) != (want == "") {
		t.Errorf("%s: got %q (%v), want %q", what, got, err, want)
	}
}

func create[T kube.Object](t *testing.T, c kube.Client, obj T) T {
	t.Helper()
	obj.SetUID("")
	stored, err := kube.Create(t.Context(), c, obj)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// patch sends a patch as it stands.
func patch[T kube.Object](ctx context.Context, c kube.Client, obj T, endpoint, body string) (T, error) {
	r := kube.ResourceOf[T]()
	stored := r.New().(T)
	err := c.Patch(ctx, r, kube.KeyOf(obj), kube.PatchBody{Type: types.MergePatchType, Data: []byte(body), Subresource: endpoint}, stored)
	return stored, err
}

func fetch[T kube.Object](t *testing.T, c kube.Client, obj T) T {
	t.Helper()
	stored, err := kube.Fetch[T](t.Context(), c, kube.KeyOf(obj))
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func testCreate(t *testing.T, c kube.Client) {
	secret := kit.Secret("created", map[string]string{"a": "b"})
	stored := create(t, c, secret)
	if stored.UID == "" || stored.ResourceVersion == "" || stored.CreationTimestamp.IsZero() || string(stored.Data["a"]) != "b" {
		t.Errorf("stored %v", stored)
	}
	if stored.Kind != "" || stored.APIVersion != "" {
		t.Errorf("typed objects carry no kind, got %q", stored.Kind)
	}
	_, err := kube.Create(t.Context(), c, secret)
	expect(t, "again", err, metav1.StatusReasonAlreadyExists)

	versioned := kit.Secret("versioned", nil)
	versioned.ResourceVersion = stored.ResourceVersion
	_, err = kube.Create(t.Context(), c, versioned)
	if err == nil {
		t.Error("an object with a resource version was created")
	}

	generated := kit.Secret("", nil)
	generated.GenerateName = "made-"
	first, second := create(t, c, generated), create(t, c, generated)
	if first.Name == second.Name || len(first.Name) != len("made-")+5 {
		t.Errorf("generated names %q and %q", first.Name, second.Name)
	}

	if err := kube.Delete(t.Context(), c, stored); err != nil {
		t.Error(err)
	}
	if next := create(t, c, secret); next.UID == stored.UID {
		t.Error("a namesake has the same UID")
	}
	_, err = kube.Fetch[*corev1.Secret](t.Context(), c, kube.Key{Namespace: "default", Name: "never"})
	expect(t, "missing", err, metav1.StatusReasonNotFound)

	terminating := kit.With(kit.Secret("born-dead", nil), kit.Deleted)
	if born := create(t, c, terminating); born.DeletionTimestamp != nil {
		t.Error("an object was born with a deletion time")
	}
}

func testLock(t *testing.T, c kube.Client) {
	old := create(t, c, kit.Secret("locked", nil))
	now, err := patch(t.Context(), c, old, "", `{"metadata":{"labels":{"a":"1"}}}`)
	expect(t, "without lock", err, "")
	if now.ResourceVersion == old.ResourceVersion {
		t.Error("a change kept the version")
	}
	_, err = patch(t.Context(), c, old, "", `{"metadata":{"labels":{"a":"2"},"resourceVersion":"`+old.ResourceVersion+`"}}`)
	expect(t, "stale lock", err, metav1.StatusReasonConflict)
	_, err = patch(t.Context(), c, old, "", `{"metadata":{"labels":{"a":"2"},"uid":"00000000-0000-0000-0000-000000000000"}}`)
	expect(t, "another UID", err, metav1.StatusReasonInvalid)
	_, err = patch(t.Context(), c, old, "",
		`{"metadata":{"labels":{"a":"2"},"uid":"00000000-0000-0000-0000-000000000000","resourceVersion":"`+old.ResourceVersion+`"}}`)
	expect(t, "another UID and a stale lock", err, metav1.StatusReasonConflict)
	_, err = patch(t.Context(), c, old, "",
		`{"metadata":{"labels":{"a":"3"},"uid":"`+string(now.UID)+`","resourceVersion":"`+now.ResourceVersion+`"}}`)
	expect(t, "right lock", err, "")
	_, err = patch(t.Context(), c, kit.Secret("never", nil), "", `{"metadata":{"labels":{"a":"2"}}}`)
	expect(t, "missing", err, metav1.StatusReasonNotFound)
	_, err = patch(t.Context(), c, old, "status", `{"metadata":{"labels":{"a":"2"}}}`)
	expect(t, "no such subresource", err, metav1.StatusReasonNotFound)
	if got := fetch(t, c, old).Labels["a"]; got != "3" {
		t.Errorf("label is %q", got)
	}
}

func testNullAndNoChange(t *testing.T, c kube.Client) {
	secret := kit.With(kit.Secret("nulls", nil), kit.Annotation("keep", "1"), kit.Annotation("drop", "2"))
	old := create(t, c, secret)
	now, err := patch(t.Context(), c, old, "", `{"metadata":{"annotations":{"drop":null,"absent":null}}}`)
	expect(t, "null", err, "")
	if len(now.Annotations) != 1 || now.Annotations["keep"] != "1" {
		t.Errorf("annotations %v", now.Annotations)
	}
	same, err := patch(t.Context(), c, now, "", `{"metadata":{"annotations":{"keep":"1"}}}`)
	expect(t, "no change", err, "")
	if same.ResourceVersion != now.ResourceVersion {
		t.Error("a patch without change made a new version")
	}
	_, err = patch(t.Context(), c, now, "", `{"metadata":`)
	expect(t, "broken JSON", err, metav1.StatusReasonBadRequest)
}

func testAccessReview(t *testing.T, c kube.Client) {
	for _, verb := range []string{"patch", "create"} {
		if !allowed(t, c, verb) {
			t.Errorf("nothing is denied, but %s is", verb)
		}
	}
	api, ok := c.(*kit.API)
	if !ok {
		return
	}
	release := api.Deny("patch", "secrets")
	if allowed(t, c, "patch") {
		t.Error("denied, but the review says otherwise")
	}
	_, err := patch(t.Context(), c, kit.Secret("x", nil), "", `{}`)
	expect(t, "denied", err, metav1.StatusReasonForbidden)
	release()
	if !allowed(t, c, "patch") {
		t.Error("still denied")
	}
}
