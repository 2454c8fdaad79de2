// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/trace"
)

// About says which object the look in hand is about, and of whose trace it is. What is being deleted has another trace than
// what is being made.
func About(ctx context.Context, obj Object, of types.UID) {
	if !trace.IsTraced(ctx) {
		return
	}
	r, _ := ResourceFor(obj)
	operation := trace.Create
	if obj.GetDeletionTimestamp() != nil {
		operation = trace.Delete
	}
	trace.About(ctx, trace.Subject{
		Kind: r.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: string(obj.GetUID()), Of: string(of), Operation: operation,
	})
}

// traced is a client whose requests about one object are spans of the look in hand.
type traced struct{ Client }

// NewTraced makes a client whose requests are traced. It is for processes that trace at all.
func NewTraced(c Client) Client { return &traced{c} }

// request is one, as its span names it. The bodies are nobody's business: that of a secret least.
type request struct {
	verb        string
	resource    Resource
	key         Key
	subresource string
}

func (q request) trace(ctx context.Context, do func(context.Context) error) error {
	plural := q.resource.Plural
	if q.subresource != "" {
		plural += "/" + q.subresource
	}
	ctx, span := trace.Start(ctx, q.verb+" "+plural)
	if span.IsNone() {
		return do(ctx)
	}
	span.Set("k8s.verb", q.verb)
	span.Set("k8s.resource", plural)
	span.Set("k8s.namespace.name", q.key.Namespace)
	span.Set("k8s.object.name", q.key.Name)
	err := do(ctx)
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		span.SetNumber("http.response.status_code", int(status.Status().Code))
	}
	span.End(q.cause(err))
	return err
}

// cause names a failure by its reason, since its words may repeat what was sent. That a live read finds nothing is an answer.
func (q request) cause(err error) string {
	switch {
	case err == nil, q.verb == "get" && apierrors.IsNotFound(err):
		return ""
	case apierrors.ReasonForError(err) != "":
		return string(apierrors.ReasonForError(err))
	}
	return "NoAnswer"
}

// Fetch implements Client.
func (t *traced) Fetch(ctx context.Context, r Resource, key Key, into Object) error {
	return request{verb: "get", resource: r, key: key}.trace(ctx, func(ctx context.Context) error {
		return t.Client.Fetch(ctx, r, key, into)
	})
}

// Create implements Client.
func (t *traced) Create(ctx context.Context, r Resource, obj, into Object) error {
	return request{verb: "create", resource: r, key: KeyOf(obj)}.trace(ctx, func(ctx context.Context) error {
		return t.Client.Create(ctx, r, obj, into)
	})
}

// Patch implements Client.
func (t *traced) Patch(ctx context.Context, r Resource, key Key, body PatchBody, into Object) error {
	return request{verb: "patch", resource: r, key: key, subresource: body.Subresource}.trace(ctx, func(ctx context.Context) error {
		return t.Client.Patch(ctx, r, key, body, into)
	})
}

// Delete implements Client.
func (t *traced) Delete(ctx context.Context, r Resource, key Key, options metav1.DeleteOptions) error {
	return request{verb: "delete", resource: r, key: key}.trace(ctx, func(ctx context.Context) error {
		return t.Client.Delete(ctx, r, key, options)
	})
}
