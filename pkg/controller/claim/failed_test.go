// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// PP-8: who publishes capacities hears of each refusal, with the node that was selected for its room, before
// the claim is given back: one that hears later, or of the class alone, lets the scheduler choose the same
// node again. A claim that never reached the driver says nothing about room.
func TestFailuresAreTold(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(h *kit.Harness)
		want  []string
		first string
	}{
		{"PP-8 no room at the selected node", func(h *kit.Harness) { h.Driver.Next("CreateVolume", kit.Reply{Code: codes.ResourceExhausted}) }, []string{"fast at n1, selected n1"}, ""},
		{"T95 any other failure", func(h *kit.Harness) { h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Internal}) }, []string{"fast at n1, selected n1"}, ""},
		{"success is told by the volume", func(*kit.Harness) {}, nil, ""},
		{"T95 nothing was asked of the driver", func(h *kit.Harness) {
			h.Put(kit.Class(kit.ClassName, kit.WaitForConsumer), kit.Claim("data", kit.OnNode("n1"), func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = nil }))
			class := kit.Class(kit.ClassName, kit.WaitForConsumer)
			class.Parameters[wellknown.ParamSecretName], class.Parameters[wellknown.ParamSecretNamespace] = "missing", kit.Namespace
			h.Put(class)
		}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := inZones(t)
			c.edit(h)
			h.Horizon = 0
			var told []string
			start(h, func(_ *claim.Options, d *claim.Deps) {
				d.Failed = func(class, node string) {
					now, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "data"})
					told = append(told, class+" at "+node+", selected "+now.Annotations[wellknown.AnnSelectedNode])
				}
			})
			h.Settle()
			if d := cmp.Diff(c.want, told); d != "" {
				t.Errorf("%s\n%s", d, h.Trace())
			}
		})
	}
}
