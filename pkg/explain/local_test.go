// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestNodesThatAreGone: without the node's name a user looks for a fault in the cluster where a machine is missing.
func TestNodesThatAreGone(t *testing.T) {
	onNode := func(v *corev1.PersistentVolume) {
		v.Spec.CSI.VolumeAttributes = map[string]string{wellknown.VolumeAttributeIdentity: "1-2-" + kit.DriverName + "-n1"}
		kube.AddFinalizer(v, wellknown.FinalizerVolume)
	}
	for _, c := range []struct {
		name    string
		objects []kube.Object
		says    []string
		not     string
	}{
		{"a claim that no node has taken", []kube.Object{kit.Claim("data")}, []string{"No node has taken the claim yet"}, "n1"},
		{"a claim of a node", []kube.Object{kit.Claim("data", kit.OnNode("n1")), kit.Node("n1", nil)},
			[]string{"the provisioner of node n1"}, "does not exist"},
		{"a claim of a node that is gone", []kube.Object{kit.Claim("data", kit.OnNode("n1"))},
			[]string{"n1, which does not exist (any more)", "remove the annotation " + wellknown.AnnSelectedNode}, ""},
		{"a volume on a node that is gone", []kube.Object{kit.Claim("data", kit.BoundTo("v")), kit.Volume("v", kit.ClaimedBy(kit.Claim("data")), onNode, kit.Released)},
			[]string{"n1, which does not exist (any more)", "kubectl patch pv v"}, ""},
		{"a volume in use, under a name that is no node's", []kube.Object{kit.Claim("data", kit.BoundTo("v")), kit.Volume("v", kit.ClaimedBy(kit.Claim("data")), onNode)},
			[]string{"n1, which does not exist (any more): nobody works on this, unless its provisioner was started with a wrong NODE_NAME"}, "kubectl patch pv v"},
		{"a claim of a class that no node has the places of", append(zones(), kit.Claim("data"), kit.Class(kit.ClassName, in("topology.kubernets.io/zone", "a"))),
			[]string{"No node has taken the claim yet", "in the way: allowedTopologies of StorageClass fast fit no node, so that the provisioner of no node takes the claim",
				"(did you mean topology.kubernetes.io/zone?)", "kubectl edit storageclass fast"}, "see what the provisioners on the nodes log"},
		{"a claim that waits for a pod", []kube.Object{kit.Claim("data"), kit.Class(kit.ClassName, kit.WaitForConsumer)}, []string{"waits for its first consumer"}, "n1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.Class(kit.ClassName))
			h.Put(c.objects...)
			options := claim.NewOptions()
			options.NodeDeployment = true
			rooms := Provisioner{Claim: *options, Source: *source.NewOptions()}
			report := readOnly(t, h, func() (*Report, error) {
				return Claim(h.Ctx, setting(h, askedDriver(kit.Everything())), rooms, kit.Namespace, "data")
			})
			text := strings.Join(strings.Fields(written(t, report, "text")), " ")
			for _, words := range c.says {
				if !strings.Contains(text, words) {
					t.Errorf("%q is missing in:\n%s", words, text)
				}
			}
			if c.not != "" && strings.Contains(text, c.not) {
				t.Errorf("%q is in:\n%s", c.not, text)
			}
		})
	}
}
