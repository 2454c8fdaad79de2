// SPDX-License-Identifier: Apache-2.0

package params

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzResolveSecret: a template gives a reference that Kubernetes can have, or an error, and what users write
// into their claims never chooses the namespace.
func FuzzResolveSecret(f *testing.F) {
	f.Add(uint8(1), "${pv.name}", "${pvc.namespace}", "data", "x")
	f.Add(uint8(3), "a${", "b$$", "${pv.name}", "pv.name")
	f.Add(uint8(7), "${}${pvc.annotations['x']}", "$1", "x", "x")
	f.Add(uint8(8), "${volumesnapshot.name}", "${pvc.annotations['x']}", "x", "']}${pv.name}")
	f.Fuzz(func(t *testing.T, number uint8, name, namespace, value, key string) {
		kind := Kind(int(number) % len(kinds))
		keys := kinds[kind]
		in := map[string]string{keys.name: name, keys.namespace: namespace}
		tokens := VolumeTokens("pv-1", Claim{Namespace: "ns-1", Name: "data", Annotations: map[string]string{key: value}})
		got, err := ResolveSecret(kind, in, tokens)
		again, errAgain := ResolveSecret(kind, in, tokens)
		if (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() || err == nil && *got != *again {
			t.Errorf("%v, %v and then %v, %v", got, err, again, errAgain)
		}
		if err != nil {
			return
		}
		if len(validation.IsDNS1123Subdomain(got.Name)) > 0 || len(validation.IsDNS1123Label(got.Namespace)) > 0 {
			t.Errorf("%q, %q resolved to %v", name, namespace, got)
		}
		tokens = VolumeTokens("pv-1", Claim{Namespace: "ns-1", Name: "data", Annotations: map[string]string{key: value + "x"}})
		if other, err := ResolveSecret(kind, in, tokens); err == nil && other.Namespace != got.Namespace {
			t.Errorf("an annotation has chosen namespace %s instead of %s", other.Namespace, got.Namespace)
		}
	})
}

// FuzzParameters: no reserved key reaches the driver, everything else does, and the class stays as it is.
func FuzzParameters(f *testing.F) {
	f.Add("fstype", "xfs", "csi.storage.k8s.io/fstype", "")
	f.Add("csi.storage.k8s.io/foo", "", "FSTYPE", "ext4")
	f.Add("csi.storage.k8s.io/secret-name", "s", "csiNodeStageSecretName", "s")
	f.Fuzz(func(t *testing.T, key, value, otherKey, other string) {
		in := map[string]string{key: value, otherKey: other}
		before := maps.Clone(in)
		got, err := DriverParameters(in, VolumeKeys())
		for reached := range got {
			if strings.HasPrefix(reached, prefix) || got[reached] != in[reached] {
				t.Errorf("%q = %q reaches the driver", reached, got[reached])
			}
		}
		for asked := range in {
			if _, ok := got[asked]; err == nil && !ok && !slices.Contains(VolumeKeys(), asked) {
				t.Errorf("%q is lost", asked)
			}
		}
		fsType, err := FSType(in, "standard")
		if err == nil && fsType != "standard" && (fsType == "" || fsType != value && fsType != other) {
			t.Errorf("file system %q of %q", fsType, in)
		}
		for _, kind := range []Kind{Default, Provisioner, ControllerModify} {
			if ref, err := ResolveSecret(kind, in, VolumeTokens("pv", Claim{})); err != nil && ref != nil {
				t.Error("a secret beside an error")
			}
		}
		if again := Deprecations(in); !slices.Equal(again, Deprecations(in)) || !slices.IsSorted(again) {
			t.Errorf("deprecations in chance order: %q", again)
		}
		if !maps.Equal(before, in) {
			t.Errorf("the class was %q and is %q", before, in)
		}
	})
}
