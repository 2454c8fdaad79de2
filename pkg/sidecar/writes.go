// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// counted is a client that counts its writes, which are what the sidecars cost the API server most.
type counted struct {
	kube.Client
	writes *prometheus.CounterVec
}

func newCounted(client kube.Client, registry prometheus.Registerer) kube.Client {
	c := &counted{client, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "csi_tandem_api_writes_total",
		Help: "Writes to the API server, with the status of the answer; 0 where there was none.",
	}, []string{"verb", "resource", "code"})}
	registry.MustRegister(c.writes)
	return c
}

func (c *counted) count(verb string, r kube.Resource, subresource string, err error) error {
	resource := r.Plural
	if subresource != "" {
		resource += "/" + subresource
	}
	c.writes.WithLabelValues(verb, resource, codeOf(verb, err)).Inc()
	return err
}

// codeOf is the HTTP status of an answer.
func codeOf(verb string, err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil && verb == "create":
		return "201"
	case err == nil:
		return "200"
	case errors.As(err, &status):
		return strconv.Itoa(int(status.Status().Code))
	}
	return "0"
}

// Create implements kube.Client.
func (c *counted) Create(ctx context.Context, r kube.Resource, obj, into kube.Object) error {
	return c.count("create", r, "", c.Client.Create(ctx, r, obj, into))
}

// Patch implements kube.Client.
func (c *counted) Patch(ctx context.Context, r kube.Resource, key kube.Key, body kube.PatchBody, into kube.Object) error {
	return c.count("patch", r, body.Subresource, c.Client.Patch(ctx, r, key, body, into))
}

// Delete implements kube.Client.
func (c *counted) Delete(ctx context.Context, r kube.Resource, key kube.Key, options metav1.DeleteOptions) error {
	return c.count("delete", r, "", c.Client.Delete(ctx, r, key, options))
}
