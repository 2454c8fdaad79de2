// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// errReadOnly is the answer to every write, and to the reading of what is in secrets.
var errReadOnly = errors.New("refused: an explanation only reads, and of secrets only whether they exist")

// reader is a client that cannot write, whoever holds it, and that remembers which reads failed: a user
// may see less than the sidecar does.
type reader struct {
	under kube.Client

	mu     sync.Mutex
	failed []string
}

// Fetch implements kube.Client.
func (c *reader) Fetch(ctx context.Context, r kube.Resource, key kube.Key, into kube.Object) error {
	if _, bare := into.(*metav1.PartialObjectMetadata); r.Group == "" && r.Plural == "secrets" && !bare {
		return errReadOnly
	}
	return c.note(c.under.Fetch(ctx, r, key, into), fmt.Sprintf("reading %s %s", r.Plural, kube.IndexValue(key)))
}

// List implements kube.Client.
func (c *reader) List(ctx context.Context, r kube.Resource, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	if r.Group == "" && r.Plural == "secrets" {
		return nil, errReadOnly
	}
	list, err := c.under.List(ctx, r, namespace, options)
	return list, c.note(err, "listing "+r.Plural)
}

// note remembers a read that failed otherwise than by telling that there is nothing.
func (c *reader) note(err error, doing string) error {
	if err == nil || apierrors.IsNotFound(err) {
		return err
	}
	why := err.Error()
	if apierrors.IsForbidden(err) {
		why = "not allowed to you"
	}
	text := doing + ": " + why
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.failed, text) {
		c.failed = append(c.failed, text)
	}
	return err
}

// takeFailed gives the reads that failed since it was last called.
func (c *reader) takeFailed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := c.failed
	c.failed = nil
	return failed
}

// remember puts back what failed of some reading that was done apart.
func (c *reader) remember(failed []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, failed...)
}

// apart does some reading and gives what failed of it, without a word about it among what failed before.
func (c *reader) apart(do func()) (failed []string) {
	before := c.takeFailed()
	do()
	failed = c.takeFailed()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = before
	return failed
}

// Create implements kube.Client.
func (c *reader) Create(context.Context, kube.Resource, kube.Object, kube.Object) error {
	return errReadOnly
}

// Patch implements kube.Client.
func (c *reader) Patch(context.Context, kube.Resource, kube.Key, kube.PatchBody, kube.Object) error {
	return errReadOnly
}

// Delete implements kube.Client.
func (c *reader) Delete(context.Context, kube.Resource, kube.Key, metav1.DeleteOptions) error {
	return errReadOnly
}

// Watch implements kube.Client.
func (c *reader) Watch(context.Context, kube.Resource, string, metav1.ListOptions) (watch.Interface, error) {
	return nil, errReadOnly
}
