// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/trace"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestTrace: what one look asks and writes is below its span, what failed carries a word and none of what was sent, and the
// look after that, in another process, is in the same trace.
func TestTrace(t *testing.T) {
	h := kit.New(t)
	h.Driver.Capabilities = can()
	h.Put(kit.Class(kit.ClassName, func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{
			"csi.storage.k8s.io/provisioner-secret-name": "creds", "csi.storage.k8s.io/provisioner-secret-namespace": kit.Namespace,
		}
	}), kit.Claim("data"), kit.Secret("creds", map[string]string{"token": "canary"}))
	h.API.Fail("create", "persistentvolumes", apierrors.NewInternalError(errors.New("canary")), 1)
	var records []trace.Record
	look := func(chance string) {
		tracer, err := trace.NewInto(func(r trace.Record) { records = append(records, r) }, trace.Options{Clock: h.Clock, Chance: strings.NewReader(strings.Repeat(chance, 32))})
		if err != nil {
			t.Fatal(err)
		}
		c := start(h, func(_ *claim.Options, d *claim.Deps) { d.Client = kube.NewTraced(h.API) })
		ctx, look := trace.Begin(trace.NewContext(h.Ctx, tracer), "claims", "", "")
		_, _ = c.Reconcile(ctx, dataUID)
		look.End("")
		h.Restart()
	}
	look("a")
	look("b")
	var got []string
	for _, r := range records {
		line := r.Name
		for _, a := range r.Attributes {
			switch a.Key {
			case "k8s.object.name", "csi_tandem.step":
				line += " " + a.Text
			}
		}
		if r.Failed != "" {
			line += " → " + r.Failed
		}
		got = append(got, line)
		if r.TraceID != records[0].TraceID {
			t.Errorf("%s is in another trace", r.Name)
		}
		for _, a := range r.Attributes {
			if strings.Contains(a.Text+r.Failed, "canary") {
				t.Errorf("%s: %v", r.Name, r)
			}
		}
	}
	want := []string{
		"get secrets creds", "create persistentvolumes " + name + " → InternalError", "reconcile claims data Create",
		"get secrets creds", "create persistentvolumes " + name, "reconcile claims data Create",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
