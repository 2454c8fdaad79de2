// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

var (
	codecs         = serializer.NewCodecFactory(Scheme)
	parameterCodec = runtime.NewParameterCodec(Scheme)
)

// server is the Client over HTTP: one connection pool and one rate limit, one small REST client for
// each API version.
type server struct {
	versions map[dialect]*rest.RESTClient
}

// dialect is an API version in one of the forms in which objects travel.
type dialect struct {
	schema.GroupVersion
	json bool
}

func (s *server) of(r Resource) *rest.RESTClient {
	return s.versions[dialect{r.GroupVersion(), r.JSON}]
}

// NewClient connects to an API server. Kinds travel as protobuf where they have that form, else as JSON.
func NewClient(config *rest.Config) (Client, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("building the HTTP client: %w", err)
	}
	shared := rest.CopyConfig(config)
	if shared.RateLimiter == nil {
		// One limiter for all versions, as one client would have.
		shared.RateLimiter = limiterOf(shared)
	}
	s := &server{versions: map[dialect]*rest.RESTClient{}}
	for _, r := range Resources() {
		if s.of(r) != nil {
			continue
		}
		gv := r.GroupVersion()
		versioned := rest.CopyConfig(shared)
		versioned.GroupVersion = &gv
		versioned.NegotiatedSerializer = codecs.WithoutConversion()
		versioned.APIPath = "/apis"
		if gv.Group == "" {
			versioned.APIPath = "/api"
		}
		versioned.ContentType, versioned.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
		if !r.JSON {
			versioned.ContentType = runtime.ContentTypeProtobuf
			versioned.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		}
		client, err := rest.RESTClientForConfigAndClient(versioned, transport)
		if err != nil {
			return nil, fmt.Errorf("building the client of %v: %w", gv, err)
		}
		s.versions[dialect{gv, r.JSON}] = client
	}
	return s, nil
}

// metadataOnly asks the server to leave out all but the metadata of an object.
const metadataOnly = runtime.ContentTypeJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

func (s *server) Fetch(ctx context.Context, r Resource, key Key, into Object) error {
	if cannotExist(r, key) {
		return apierrors.NewNotFound(r.GroupResource(), key.Name)
	}
	request := s.of(r).Get().
		NamespaceIfScoped(key.Namespace, r.Namespaced).Resource(r.Plural).Name(key.Name)
	if _, ok := into.(*metav1.PartialObjectMetadata); ok {
		request.SetHeader("Accept", metadataOnly)
	}
	return request.Do(ctx).Into(into)
}

// cannotExist tells that no object can have the key. References say what their writers like, such as nothing at all, and the client
// refuses to ask for that with an error that would leave open for ever what is certain.
func cannotExist(r Resource, key Key) bool {
	return !isPathSegment(key.Name) || r.Namespaced && !isPathSegment(key.Namespace)
}

func isPathSegment(name string) bool {
	return name != "" && len(path.IsValidPathSegmentName(name)) == 0
}

func (s *server) Create(ctx context.Context, r Resource, obj, into Object) error {
	return s.of(r).Post().
		NamespaceIfScoped(obj.GetNamespace(), r.Namespaced).Resource(r.Plural).
		Body(obj).Do(ctx).Into(into)
}

func (s *server) Patch(ctx context.Context, r Resource, key Key, body PatchBody, into Object) error {
	request := s.of(r).Patch(body.Type).
		NamespaceIfScoped(key.Namespace, r.Namespaced).Resource(r.Plural).Name(key.Name)
	if body.Subresource != "" {
		request = request.SubResource(body.Subresource)
	}
	return request.Body(body.Data).Do(ctx).Into(into)
}

func (s *server) Delete(ctx context.Context, r Resource, key Key, options metav1.DeleteOptions) error {
	return s.of(r).Delete().
		NamespaceIfScoped(key.Namespace, r.Namespaced).Resource(r.Plural).Name(key.Name).
		Body(&options).Do(ctx).Error()
}

func (s *server) List(ctx context.Context, r Resource, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	list := r.NewList()
	request := s.of(r).Get().
		NamespaceIfScoped(namespace, r.Namespaced && namespace != "").Resource(r.Plural).
		VersionedParams(&options, parameterCodec)
	if options.Continue != "" {
		// The pages of a list count as one request: a limit that somebody has set for the work must not make the start of a
		// large cluster's sidecar take minutes.
		request.Throttle(flowcontrol.NewFakeAlwaysRateLimiter())
	}
	err := request.Do(ctx).Into(list)
	return list, err
}

func (s *server) Watch(ctx context.Context, r Resource, namespace string, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return s.of(r).Get().
		NamespaceIfScoped(namespace, r.Namespaced && namespace != "").Resource(r.Plural).
		VersionedParams(&options, parameterCodec).Watch(ctx)
}
