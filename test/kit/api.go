// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// API is an API server in memory. It keeps raw JSON, so that fields which no Go type here knows survive,
// and follows the real server in what rooms rely on: resource versions, conflicts, UIDs, finalizers,
// status subresources, merge patches. It can be used by many at once.
type API struct {
	clock clock.PassiveClock
	log   *Log

	mu       sync.Mutex
	version  int64
	objects  map[objectKey]raw
	views    map[objectKey]kube.Object
	births   map[objectKey]int
	requests []Request
	rules    []*Rule
	history  []event
	// forgotten is the newest version that watches can no longer begin at.
	forgotten int64
	changed   chan struct{}
	broken    int
	listeners []*listener
}

type objectKey struct {
	plural string
	key    kube.Key
}

// Request is one request as the API server saw it.
type Request struct {
	Verb        string
	Resource    string
	Subresource string
	Key         kube.Key
	// Body is the patch or the object as JSON.
	Body string
	// Bare is set when nothing but the metadata was asked for.
	Bare bool
	// Code is the HTTP status of the answer.
	Code int
}

// String reads "patch persistentvolumes/status pvc-1".
func (r Request) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return strings.TrimSpace(r.Verb + " " + resource + " " + nameOf(r.Key))
}

func nameOf(key kube.Key) string { return kube.IndexValue(key) }

// NewAPI makes an empty API server.
func NewAPI(clk clock.PassiveClock, log *Log) *API {
	return &API{
		clock: clk, log: log, version: 1000,
		objects: map[objectKey]raw{}, views: map[objectKey]kube.Object{}, births: map[objectKey]int{}, changed: make(chan struct{}),
	}
}

// Requests are all requests so far, reads too.
func (a *API) Requests() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// Verbs lists every "verb resource" that was asked, sorted, for comparison with RBAC.
func (a *API) Verbs() []string {
	var verbs []string
	for _, r := range a.Requests() {
		resource := r.Resource
		if r.Subresource != "" {
			resource += "/" + r.Subresource
		}
		verbs = append(verbs, r.Verb+" "+resource)
	}
	slices.Sort(verbs)
	return slices.Compact(verbs)
}

// Fetch implements kube.Client.
func (a *API) Fetch(ctx context.Context, r kube.Resource, key kube.Key, into kube.Object) error {
	if err := alive(ctx); err != nil {
		return err
	}
	request := Request{Verb: "get", Resource: r.Plural, Key: key}
	_, request.Bare = into.(*metav1.PartialObjectMetadata)
	_, err := a.serve(request, func() (string, error) {
		at := objectKey{r.Plural, key}
		found, ok := a.objects[at]
		if !ok {
			return "", apierrors.NewNotFound(r.GroupResource(), key.Name)
		}
		return "", a.answer(r, at, found, into)
	})
	return err
}

// Create implements kube.Client.
func (a *API) Create(ctx context.Context, r kube.Resource, obj, into kube.Object) error {
	if review, ok := obj.(*authorizationv1.SelfSubjectAccessReview); ok {
		return a.review(ctx, review, into)
	}
	if review, ok := obj.(*authenticationv1.SelfSubjectReview); ok {
		return a.whoami(ctx, review, into)
	}
	body, err := encode(obj)
	if err != nil {
		return err
	}
	request := Request{Verb: "create", Resource: r.Plural, Key: kube.KeyOf(obj), Body: text(body)}
	return a.write(ctx, r, request, func() (string, error) {
		stored, err := a.create(r, body)
		if err != nil {
			return "", err
		}
		return "", a.answer(r, objectKey{r.Plural, keyOf(stored)}, stored, into)
	})
}

// Patch implements kube.Client.
func (a *API) Patch(ctx context.Context, r kube.Resource, key kube.Key, body kube.PatchBody, into kube.Object) error {
	request := Request{Verb: "patch", Resource: r.Plural, Subresource: body.Subresource, Key: key, Body: string(body.Data)}
	return a.write(ctx, r, request, func() (string, error) {
		stored, err := a.patch(r, key, body)
		if err != nil {
			return "", err
		}
		return " " + patchText(body.Data), a.answer(r, objectKey{r.Plural, key}, stored, into)
	})
}

// Delete implements kube.Client.
func (a *API) Delete(ctx context.Context, r kube.Resource, key kube.Key, options metav1.DeleteOptions) error {
	request := Request{Verb: "delete", Resource: r.Plural, Key: key}
	return a.write(ctx, r, request, func() (string, error) { return "", a.delete(r, key, options.Preconditions) })
}

// write is a request that changes something: an effect.
func (a *API) write(ctx context.Context, r kube.Resource, request Request, work func() (string, error)) error {
	lost := apierrors.NewTimeoutError("the server did not answer in time", 1)
	return a.log.effect(ctx, request.String(), lost, func() (string, error) {
		answer, err := a.serve(request, work)
		if err != nil {
			answer = fmt.Sprintf(" → %s", reasonOf(err))
		}
		return answer, err
	})
}

// serve does the work of a request under the script, and writes the request down.
func (a *API) serve(request Request, work func() (string, error)) (string, error) {
	rule := a.take(request)
	if rule != nil && rule.Meanwhile != nil {
		rule.Meanwhile()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var answer string
	var err error
	if rule == nil || rule.Err == nil || rule.Done {
		answer, err = work()
	}
	if rule != nil && rule.Err != nil && err == nil {
		err = rule.Err
	}
	request.Code = codeOf(request.Verb, err)
	a.requests = append(a.requests, request)
	return answer, err
}

func codeOf(verb string, err error) int {
	switch status := apierrors.APIStatus(nil); {
	case err == nil && verb == "create":
		return http.StatusCreated
	case err == nil:
		return http.StatusOK
	case asStatus(err, &status):
		return int(status.Status().Code)
	}
	return 0 // no answer arrived
}

func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	return err.Error()
}

// review answers what the rules of Deny leave.
func (a *API) review(ctx context.Context, review *authorizationv1.SelfSubjectAccessReview, into kube.Object) error {
	if err := alive(ctx); err != nil {
		return err
	}
	answer := review.DeepCopy()
	if asked := review.Spec.ResourceAttributes; asked != nil {
		answer.Status.Allowed = !a.isDenied(Request{Verb: asked.Verb, Resource: asked.Resource, Subresource: asked.Subresource})
	}
	_, err := a.serve(Request{Verb: "create", Resource: "selfsubjectaccessreviews"}, func() (string, error) {
		data, err := encode(answer)
		if err != nil {
			return "", err
		}
		return "", decode(data, into)
	})
	return err
}

// Account is who the process is, as far as the API server can tell.
const Account = "system:serviceaccount:kit:sidecar"

// whoami answers who asks.
func (a *API) whoami(ctx context.Context, review *authenticationv1.SelfSubjectReview, into kube.Object) error {
	if err := alive(ctx); err != nil {
		return err
	}
	answer := review.DeepCopy()
	answer.Status.UserInfo.Username = Account
	_, err := a.serve(Request{Verb: "create", Resource: "selfsubjectreviews"}, func() (string, error) {
		data, err := encode(answer)
		if err != nil {
			return "", err
		}
		return "", decode(data, into)
	})
	return err
}

// hasStatus tells the kinds whose status can be written through the subresource only.
func hasStatus(gr schema.GroupResource) bool {
	switch gr.Resource {
	case "persistentvolumes", "persistentvolumeclaims", "nodes", "volumeattachments", "volumesnapshots", "volumesnapshotcontents":
		return true
	}
	return false
}
