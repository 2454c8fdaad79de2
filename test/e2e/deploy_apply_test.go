// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// aside is an overlay in a namespace and under names of its own, beside whatever else is in the cluster.
func aside(name, base string, components ...string) overlay {
	var folders []string
	for _, c := range components {
		folders = append(folders, "deploy/components/"+c)
	}
	return overlay{base: base, components: folders, namespace: "apply-" + name, prefix: "apply-" + name + "-"}
}

// everyFolder are all kustomizations of the repository, and the components on the bases that they are for.
func everyFolder() map[string]overlay {
	return map[string]overlay{
		"pair":        aside("pair", "deploy/pair"),
		"pair-all":    aside("pair-all", "deploy/pair", pairComponents...),
		"bind-all":    aside("bind-all", "deploy/pair", "bind-all"),
		"node":        aside("node", "deploy/node"),
		"node-all":    aside("node-all", "deploy/node", nodeComponents...),
		"provisioner": aside("provisioner", "deploy/provisioner"),
		"snapshotter": aside("snapshotter", "deploy/snapshotter"),
		"hostpath":    aside("hostpath", "examples/hostpath"),
		"incumbents":  {base: "examples/vendor/incumbents"},
		"tandem":      {base: "examples/vendor/tandem"},
	}
}

var (
	pairComponents = []string{"topology", "attach", "modify", "secrets", "capacity", "cross-namespace", "namespace-labels", "explain"}
	nodeComponents = []string{"attach", "modify", "secrets", "capacity-node", "cross-namespace", "namespace-labels", "explain"}
)

// strict are the installations whose namespace enforces the pod security standard "restricted".
var strict = []string{"pair", "pair-all", "bind-all", "node", "node-all", "provisioner", "snapshotter"}

// TestEveryManifestIsApplied (server-side, on a real API server): what deploy/ and the examples have is taken, is whole by itself,
// and its pods are let in by the pod security standard that its namespace enforces. Catches a folder that names an account or a
// role of another folder, a patch of a component that finds nothing, and a container that wants more than "restricted" gives.
func TestEveryManifestIsApplied(t *testing.T) {
	t.Parallel()
	theStage(t)
	// Longer than the test's own context, for the clean-up.
	ctx := context.WithoutCancel(t.Context())
	built := buildOverlays(t, everyFolder())
	for _, name := range slices.Sorted(maps.Keys(built)) {
		manifest := built[name]
		if err := shared.stage.Cluster.ApplyBytes(ctx, manifest, ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Cleanup(func() { uninstall(t, "apply-"+name, manifest) })
		for _, fault := range accountFaults(t, manifest) {
			t.Errorf("%s: %s", name, fault)
		}
		if slices.Contains(strict, name) {
			w := &world{T: t, ctx: ctx, kube: shared.stage.Kube}
			w.letIn("apply-"+name, templates(t, manifest))
		}
	}
	if err := shared.stage.Cluster.Apply(ctx, shared.stage.Root+"/deploy/samples"); err != nil {
		t.Error(err)
	}
	if err := shared.stage.Cluster.Delete(ctx, shared.stage.Root+"/deploy/samples"); err != nil {
		t.Error(err)
	}
}

// accountFaults finds pods whose account is not in the manifest or has no rights, and rights of accounts that are not there.
func accountFaults(t *testing.T, manifest []byte) []string {
	t.Helper()
	accounts, faults := map[string]bool{}, []string{}
	for _, object := range decoded(t, manifest) {
		if a, ok := object.(*corev1.ServiceAccount); ok {
			accounts[a.Name] = true
		}
	}
	for name, template := range templates(t, manifest) {
		account := template.Spec.ServiceAccountName
		if !accounts[account] {
			faults = append(faults, fmt.Sprintf("%s runs as %q, which is not there", name, account))
		}
		if !strings.HasSuffix(name, "disk-csi-node") && len(verbsOf(t, manifest, account)) == 0 {
			faults = append(faults, fmt.Sprintf("%s runs as %q, which has no right", name, account))
		}
	}
	return faults
}

// letIn waits until the pods of each installation were made: admission has taken them.
func (w *world) letIn(namespace string, installed map[string]corev1.PodTemplateSpec) {
	w.Helper()
	for name, template := range installed {
		w.await(fmt.Sprintf("the pods of %s/%s are let in", namespace, name), func() (bool, string) {
			selector := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: template.Labels})}
			pods, err := w.kube.CoreV1().Pods(namespace).List(w.ctx, selector)
			if err != nil {
				return unreadable(err)
			}
			return len(pods.Items) > 0, fmt.Sprintf("there is none; events: %q", w.refusals(namespace))
		})
		for _, c := range template.Spec.Containers {
			if s := c.SecurityContext; s == nil || !ptr.Deref(s.ReadOnlyRootFilesystem, false) {
				w.Errorf("container %s of %s can write its root file system", c.Name, name)
			}
			if c.Name != "driver" && (c.ReadinessProbe == nil && c.StartupProbe == nil || c.Resources.Requests.Memory().IsZero()) {
				w.Errorf("container %s of %s lacks a probe or a request for memory", c.Name, name)
			}
		}
	}
}

// refusals are what controllers say of pods that they could not make.
func (w *world) refusals(namespace string) []string {
	events, err := w.kube.CoreV1().Events(namespace).List(w.ctx, metav1.ListOptions{FieldSelector: "reason=FailedCreate"})
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for _, e := range events.Items {
		all = append(all, e.Message)
	}
	return all
}

// TestManifestsAreJudged: the checks above find what they are for.
func TestManifestsAreJudged(t *testing.T) {
	const manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {serviceAccountName: nobody, containers: [{name: c, args: [--csi-address=a, --v=2]}]}}}\n"
	if faults := accountFaults(t, []byte(manifest)); len(faults) != 2 {
		t.Errorf("found %q", faults)
	}
	if flags := flagsOf(container(t, []byte(manifest), "c")); !slices.Equal(flags, []string{"--v=2"}) {
		t.Errorf("flags %q", flags)
	}
}
