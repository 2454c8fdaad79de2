// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// overlay is a kustomization of a user's own.
type overlay struct {
	// base and components are folders of the repository.
	base       string
	components []string
	// namespace and prefix are empty for what is applied as it is.
	namespace, prefix string
}

func (o overlay) text(repository string) string {
	var b strings.Builder
	b.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n")
	if o.namespace != "" {
		fmt.Fprintf(&b, "namespace: %s\n", o.namespace)
	}
	if o.prefix != "" {
		fmt.Fprintf(&b, "namePrefix: %s\n", o.prefix)
	}
	fmt.Fprintf(&b, "resources:\n  - %s/%s\n", repository, o.base)
	if len(o.components) > 0 {
		b.WriteString("components:\n")
	}
	for _, c := range o.components {
		fmt.Fprintf(&b, "  - %s/%s\n", repository, c)
	}
	return b.String()
}

// kustomize is built once, from its own module, and goes with the stage.
var kustomize = sync.OnceValues(func() (string, error) {
	program := filepath.Join(shared.stage.Dir(), "kustomize")
	cmd := exec.Command("go", "build", "-C", filepath.Join(shared.stage.Root, "test", "kustomize"), "-o", program, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building test/kustomize: %w\n%s", err, out)
	}
	return program, nil
})

// buildOverlays builds as kubectl apply -k does, each by its name.
func buildOverlays(t *testing.T, overlays map[string]overlay) map[string][]byte {
	t.Helper()
	theStage(t)
	root, dir := shared.stage.Root, t.TempDir()
	program, err := kustomize()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-out", dir}
	for name, o := range overlays {
		folder := filepath.Join(dir, name)
		up, err := filepath.Rel(folder, root)
		if err == nil {
			err = os.Mkdir(folder, 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(o.text(up)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	built := map[string][]byte{}
	for name := range overlays {
		content, err := os.ReadFile(filepath.Join(dir, name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		built[name] = content
	}
	return built
}

// decoded are the objects of a manifest whose kinds have a Go type; the others are for the API server to judge.
func decoded(t *testing.T, manifest []byte) []runtime.Object {
	t.Helper()
	var objects []runtime.Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if runtime.IsNotRegisteredError(err) {
			continue
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		objects = append(objects, object)
	}
}

// templates are the pods of a manifest, each by the name of what makes them.
func templates(t *testing.T, manifest []byte) map[string]corev1.PodTemplateSpec {
	t.Helper()
	found := map[string]corev1.PodTemplateSpec{}
	for _, object := range decoded(t, manifest) {
		switch o := object.(type) {
		case *appsv1.Deployment:
			found[o.Name] = o.Spec.Template
		case *appsv1.DaemonSet:
			found[o.Name] = o.Spec.Template
		case *appsv1.StatefulSet:
			found[o.Name] = o.Spec.Template
		}
	}
	return found
}

// container finds one by its name, in whichever pod it is.
func container(t *testing.T, manifest []byte, name string) corev1.Container {
	t.Helper()
	for _, template := range templates(t, manifest) {
		for _, c := range template.Spec.Containers {
			if c.Name == name {
				return c
			}
		}
	}
	t.Fatalf("there is no container %q", name)
	return corev1.Container{}
}

// flagsOf are the arguments of a container, but for those that are about where it runs.
func flagsOf(c corev1.Container) []string {
	return slices.DeleteFunc(slices.Clone(c.Args), func(arg string) bool {
		return strings.HasPrefix(arg, "--csi-address=") || strings.HasPrefix(arg, "--http-endpoint=")
	})
}

// verbsOf are what a manifest grants, to whichever account.
func verbsOf(t *testing.T, manifest []byte, account string) []verb {
	t.Helper()
	roles, bound := map[string][]rbacv1.PolicyRule{}, []string{}
	bind := func(role string, subjects []rbacv1.Subject) {
		if slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return s.Name == account }) {
			bound = append(bound, role)
		}
	}
	for _, object := range decoded(t, manifest) {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			roles["ClusterRole/"+o.Name] = o.Rules
		case *rbacv1.Role:
			roles["Role/"+o.Name] = o.Rules
		case *rbacv1.ClusterRoleBinding:
			bind("ClusterRole/"+o.RoleRef.Name, o.Subjects)
		case *rbacv1.RoleBinding:
			bind("Role/"+o.RoleRef.Name, o.Subjects)
		}
	}
	granted := map[verb]bool{}
	for _, role := range bound {
		for _, rule := range roles[role] {
			grant(granted, rule)
		}
	}
	var all []verb
	for v := range granted {
		all = append(all, v)
	}
	slices.Sort(all)
	return all
}
