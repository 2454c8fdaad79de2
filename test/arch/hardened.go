// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// ownImages are the images of the programs that this repository makes.
var ownImages = []string{"provisioner", "snapshotter", "snapshot-controller"}

// Hardened checks that each container of ours, wherever it is deployed, may do as little as it needs: no root, no capability, no
// file system to write to, the runtime's own seccomp profile.
func Hardened(manifests []Manifest) []Finding {
	var found []Finding
	for _, m := range manifests {
		pod := podOf(m)
		if pod == nil {
			continue
		}
		for _, c := range pod.Containers {
			if !isOurs(c.Image) {
				continue
			}
			for _, what := range softSpots(pod, &c) {
				found = append(found, Finding{"hardened", m.Path, "container " + c.Name + " " + what})
			}
		}
	}
	return found
}

func podOf(m Manifest) *corev1.PodSpec {
	switch o := m.Object.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec
	case *corev1.Pod:
		return &o.Spec
	}
	return nil
}

func isOurs(image string) bool {
	name, _, _ := strings.Cut(path.Base(image), ":")
	return slices.Contains(ownImages, name)
}

// softSpots: what a container does not say, its pod says.
func softSpots(pod *corev1.PodSpec, c *corev1.Container) []string {
	own, all := c.SecurityContext, pod.SecurityContext
	if own == nil {
		own = &corev1.SecurityContext{}
	}
	if all == nil {
		all = &corev1.PodSecurityContext{}
	}
	var soft []string
	need := func(ok bool, what string) {
		if !ok {
			soft = append(soft, what)
		}
	}
	need(is(own.RunAsNonRoot) || own.RunAsNonRoot == nil && is(all.RunAsNonRoot), "may run as root")
	need(own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation, "may get more privileges than it starts with")
	need(!is(own.Privileged), "is privileged")
	need(is(own.ReadOnlyRootFilesystem), "may write to its root file system")
	need(own.Capabilities != nil && slices.Contains(own.Capabilities.Drop, "ALL") && len(own.Capabilities.Add) == 0, "keeps capabilities")
	need(profileOf(own.SeccompProfile, all.SeccompProfile) == corev1.SeccompProfileTypeRuntimeDefault, "has no seccomp profile")
	need(!pod.HostNetwork && !pod.HostPID && !pod.HostIPC, "shares namespaces with its node")
	need(!slices.Contains(c.Args, "--enable-pprof") && !slices.Contains(c.Args, "--enable-pprof=true"), "shows profiles")
	return soft
}

func is(value *bool) bool { return value != nil && *value }

func profileOf(profiles ...*corev1.SeccompProfile) corev1.SeccompProfileType {
	for _, p := range profiles {
		if p != nil {
			return p.Type
		}
	}
	return ""
}
