// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

const fieldManager = "csi-tandem-controlplane"

// applier sends objects of any kind that the API server serves, also of kinds it learned a moment ago.
type applier struct {
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(client discovery.DiscoveryInterface, objects dynamic.Interface) *applier {
	cached := memory.NewMemCacheClient(client)
	return &applier{dynamic: objects, mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)}
}

// Apply sends every object of the files and folders by server-side apply. Definitions of kinds come first and are
// waited for. Objects without a namespace go to the default one.
func (c *Cluster) Apply(ctx context.Context, paths ...string) error {
	objects, err := parsePaths(paths)
	if err != nil {
		return err
	}
	return c.applier.apply(ctx, objects, metav1.NamespaceDefault)
}

// ApplyFS is Apply for files that are embedded.
func (c *Cluster) ApplyFS(ctx context.Context, files fs.FS, roots ...string) error {
	objects, err := parseFS(files, roots...)
	if err != nil {
		return err
	}
	return c.applier.apply(ctx, objects, metav1.NamespaceDefault)
}

// ApplyBytes is Apply for YAML in memory; objects without a namespace go to the one given.
func (c *Cluster) ApplyBytes(ctx context.Context, manifest []byte, namespace string) error {
	objects, err := parseManifest(manifest)
	if err != nil {
		return fmt.Errorf("reading a manifest: %w", err)
	}
	return c.applier.apply(ctx, objects, namespace)
}

// Delete deletes every object of the files and folders, last first, and does not wait for finalizers. What is not
// there, or of a kind that is not served any more, counts as deleted.
func (c *Cluster) Delete(ctx context.Context, paths ...string) error {
	objects, err := parsePaths(paths)
	if err != nil {
		return err
	}
	return c.applier.delete(ctx, objects, metav1.NamespaceDefault)
}

// DeleteBytes is Delete for YAML in memory; objects without a namespace are looked for in the one given.
func (c *Cluster) DeleteBytes(ctx context.Context, manifest []byte, namespace string) error {
	objects, err := parseManifest(manifest)
	if err != nil {
		return fmt.Errorf("reading a manifest: %w", err)
	}
	return c.applier.delete(ctx, objects, namespace)
}

func (a *applier) apply(ctx context.Context, objects []*unstructured.Unstructured, namespace string) error {
	var definitions []*unstructured.Unstructured
	for i, object := range inApplyOrder(objects) {
		// All definitions are sent before the first is waited for.
		if object.GetKind() != crdKind && len(definitions) > 0 {
			if err := a.awaitServed(ctx, definitions); err != nil {
				return err
			}
			definitions = nil
		}
		client, err := a.resource(object, namespace)
		if err != nil {
			return err
		}
		// Whoever else wrote a field loses it: manifests say how things are to be.
		options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
		if _, err := client.Apply(ctx, object.GetName(), object, options); err != nil {
			return fmt.Errorf("applying object %d, %s %s: %w", i+1, object.GetKind(), object.GetName(), err)
		}
		if object.GetKind() == crdKind {
			definitions = append(definitions, object)
		}
	}
	return a.awaitServed(ctx, definitions)
}

func (a *applier) delete(ctx context.Context, objects []*unstructured.Unstructured, namespace string) error {
	ordered := inApplyOrder(objects)
	slices.Reverse(ordered)
	var failures []error
	for _, object := range ordered {
		client, err := a.resource(object, namespace)
		if err == nil {
			err = client.Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			failures = append(failures, fmt.Errorf("deleting %s %s: %w", object.GetKind(), object.GetName(), err))
		}
	}
	a.mapper.Reset()
	return errors.Join(failures...)
}

// resource finds how the object's kind is served, and puts the object into a namespace if its kind asks for one.
func (a *applier) resource(object *unstructured.Unstructured, namespace string) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset()
		mapping, err = a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("finding how %s is served: %w", kind, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return a.dynamic.Resource(mapping.Resource), nil
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	return a.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
}

// awaitServed waits until objects of the defined kinds can be listed: a definition is accepted, then established,
// and only then served.
func (a *applier) awaitServed(ctx context.Context, definitions []*unstructured.Unstructured) error {
	for _, definition := range definitions {
		client, err := a.resource(definition, "")
		if err != nil {
			return err
		}
		err = poll(ctx, func(ctx context.Context) (bool, error) {
			current, err := client.Get(ctx, definition.GetName(), metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			if err := isEstablished(current); err != nil {
				return false, err
			}
			_, err = a.dynamic.Resource(servedResource(current)).List(ctx, metav1.ListOptions{Limit: 1})
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("waiting until %s is served: %w", definition.GetName(), err)
		}
	}
	if len(definitions) > 0 {
		a.mapper.Reset()
	}
	return nil
}

func isEstablished(definition *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
	if err != nil {
		return err
	}
	reason := "no condition says why"
	for _, entry := range conditions {
		condition, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		if condition["type"] == "Established" && condition["status"] == "True" {
			return nil
		}
		if condition["status"] == "False" {
			reason = fmt.Sprint(condition["type"], ": ", condition["message"])
		}
	}
	return fmt.Errorf("not established: %s", reason)
}

// servedResource is the first version of the definition that is served; one always is, or it would not be established.
func servedResource(definition *unstructured.Unstructured) schema.GroupVersionResource {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	resource := schema.GroupVersionResource{Group: group, Resource: plural}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, entry := range versions {
		version, ok := entry.(map[string]any)
		if ok && version["served"] == true {
			resource.Version, _ = version["name"].(string)
			break
		}
	}
	return resource
}
