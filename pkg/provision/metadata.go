// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Metadata lists the labels and annotations whose values the driver is told as parameters of CreateVolume.
// Only what is listed is passed on: what users write on their objects is not for everybody.
type Metadata struct {
	ClaimLabels, ClaimAnnotations         []string
	NamespaceLabels, NamespaceAnnotations []string
}

// NamespaceState is what was read of the claim's namespace.
type NamespaceState struct {
	Namespace *corev1.Namespace
	Err       error
}

// NeedsNamespace tells that the namespace of a claim has to be read.
func (m Metadata) NeedsNamespace() bool {
	return len(m.NamespaceLabels)+len(m.NamespaceAnnotations) > 0
}

func (m Metadata) isEmpty() bool {
	return len(m.ClaimLabels)+len(m.ClaimAnnotations) == 0 && !m.NeedsNamespace()
}

// ofClaim are the parameters that a claim's own labels and annotations make.
func (m Metadata) ofClaim(claim *corev1.PersistentVolumeClaim) map[string]string {
	chosen := map[string]string{}
	choose(chosen, wellknown.ParamClaimLabel, m.ClaimLabels, claim.Labels)
	choose(chosen, wellknown.ParamClaimAnnotation, m.ClaimAnnotations, claim.Annotations)
	return chosen
}

func choose(chosen map[string]string, prefix string, keys []string, values map[string]string) {
	for _, key := range keys {
		if value, ok := values[key]; ok {
			chosen[prefix+key] = value
		}
	}
}

// maxParameters is how many bytes of keys and values the CSI spec allows in a map. The strings in a map
// have no limit of their own.
const maxParameters = 4 << 10

// addMetadata tells the driver the chosen labels and annotations, under keys that nothing else may use.
func addMetadata(in ClaimInput, parameters map[string]string) error {
	if in.Metadata.isEmpty() {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		if prefix := metadataPrefix(key); prefix != "" {
			return fmt.Errorf("parameter %q of class %q looks like metadata of a claim: the prefix %s is for what flags such as --create-parameter-labels pass on; use another key in a new class", key, in.Class.Name, prefix)
		}
	}
	chosen := in.Metadata.ofClaim(in.Claim)
	if in.Metadata.NeedsNamespace() {
		if in.Namespace.Err != nil {
			return fmt.Errorf("reading namespace %s for its labels: %w", in.Claim.Namespace, in.Namespace.Err)
		}
		choose(chosen, wellknown.ParamNamespaceLabel, in.Metadata.NamespaceLabels, in.Namespace.Namespace.Labels)
		choose(chosen, wellknown.ParamNamespaceAnnotation, in.Metadata.NamespaceAnnotations, in.Namespace.Namespace.Annotations)
	}
	maps.Copy(parameters, chosen)
	return checkParameters(in, parameters, chosen)
}

// checkParameters refuses what a driver need not take. Parameters of the class alone are the driver's
// business, whatever they are.
func checkParameters(in ClaimInput, parameters, chosen map[string]string) error {
	total := 0
	for key, value := range parameters {
		total += len(key) + len(value)
	}
	if total <= maxParameters || len(chosen) == 0 {
		return nil
	}
	largest := slices.MaxFunc(slices.Sorted(maps.Keys(chosen)), func(a, b string) int {
		return cmp.Compare(len(a)+len(chosen[a]), len(b)+len(chosen[b]))
	})
	return fmt.Errorf("the parameters of the new volume have %d bytes with the labels and annotations that are passed on, and CSI allows %d; the largest is %s with %d: shorten it on claim %s/%s or its namespace, or take it from flags such as --create-parameter-labels",
		total, maxParameters, largest, len(largest)+len(chosen[largest]), in.Claim.Namespace, in.Claim.Name)
}

var metadataPrefixes = []string{
	wellknown.ParamClaimLabel, wellknown.ParamClaimAnnotation, wellknown.ParamNamespaceLabel, wellknown.ParamNamespaceAnnotation,
}

func metadataPrefix(key string) string {
	if i := slices.IndexFunc(metadataPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }); i >= 0 {
		return metadataPrefixes[i]
	}
	return ""
}
