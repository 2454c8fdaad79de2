// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func labelled(pairs ...string) func(*ClaimInput) {
	return func(in *ClaimInput) {
		in.Claim.Labels = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			in.Claim.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func passing(m Metadata) func(*ClaimInput) { return func(in *ClaimInput) { in.Metadata = m } }

func inNamespace(labels, annotations map[string]string) func(*ClaimInput) {
	return func(in *ClaimInput) {
		in.Namespace = &NamespaceState{Namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns1", Labels: labels, Annotations: annotations}}}
	}
}

var (
	teamLabel   = passing(Metadata{ClaimLabels: []string{"app.example.com/team"}})
	ofNamespace = passing(Metadata{NamespaceLabels: []string{"tenant"}})
)

func TestMetadataIsPassedOn(t *testing.T) {
	everything := passing(Metadata{
		ClaimLabels: []string{"app.example.com/team", "absent"}, ClaimAnnotations: []string{"cost"},
		NamespaceLabels: []string{"tenant"}, NamespaceAnnotations: []string{"owner", "absent"},
	})
	objects := edits{
		parameters("tier", "gold"), labelled("app.example.com/team", "blue", "other", "x"), annotate("cost", "42"), annotate("secret", "x"),
		inNamespace(map[string]string{"tenant": "t1", "other": "x"}, map[string]string{"owner": "", "other": "x"}),
	}
	for _, c := range []struct {
		name string
		flag func(*ClaimInput)
		want map[string]string
	}{
		{"by default nothing", passing(Metadata{}), map[string]string{"tier": "gold"}},
		{"what is listed and there, the empty value too", everything, map[string]string{
			"tier": "gold", "csi-tandem.io/pvc-label/app.example.com/team": "blue", "csi-tandem.io/pvc-annotation/cost": "42",
			"csi-tandem.io/namespace-label/tenant": "t1", "csi-tandem.io/namespace-annotation/owner": "",
		}},
	} {
		in := plain(append(append(edits{}, objects...), c.flag)...)
		if d := cmp.Diff(c.want, created(t, in).Request.Parameters); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if len(in.Class.Parameters) != 1 {
			t.Errorf("%s: the class of the cache was changed", c.name)
		}
	}
}

func TestMetadataRefusals(t *testing.T) {
	big := func(n int) func(*ClaimInput) { return annotate("cost", strings.Repeat("x", n)) }
	cost := passing(Metadata{ClaimAnnotations: []string{"cost"}})
	const key = "csi-tandem.io/pvc-annotation/cost"
	runClaims(t, []claimRow{
		{"the namespace is read when it is needed", edits{ofNamespace}, "ReadNamespace: ns1"},
		{"and not otherwise", edits{teamLabel}, ours},
		{"it is read only for a request that can be made", edits{ofNamespace, withTopology, node("n3")},
			`Reschedule: error generating accessibility requirements: CSINode "n3" of the selected node not found`},
		{"it cannot be read", edits{ofNamespace, func(in *ClaimInput) { in.Namespace = &NamespaceState{Err: errors.New("no")} }},
			"Reject: reading namespace ns1 for its labels: no"},
		{"a class cannot speak for claims", edits{teamLabel, parameters("csi-tandem.io/pvc-label/app.example.com/team", "red")},
			`Reject: parameter "csi-tandem.io/pvc-label/app.example.com/team" of class "sc" looks like metadata of a claim: the prefix csi-tandem.io/pvc-label/ is for what flags such as --create-parameter-labels pass on; use another key in a new class`},
		{"without the flags such a parameter is one like any other", edits{parameters("csi-tandem.io/pvc-label/x", "red")}, ours},
		{"4 KiB of keys and values fit", edits{cost, big(4096 - len(key))}, ours},
		{"one byte more does not", edits{cost, big(4097 - len(key))},
			"Reject: the parameters of the new volume have 4097 bytes with the labels and annotations that are passed on, and CSI allows 4096; the largest is " + key + " with 4097: shorten it on claim ns1/data or its namespace, or take it from flags such as --create-parameter-labels"},
		{"a large class without metadata is the driver's business", edits{cost, parameters("x", strings.Repeat("x", 5000))}, ours},
	})
}

func TestMetadataReleasesARefusal(t *testing.T) {
	refused := func(in *ClaimInput) {
		in.Refusal = &Refusal{Until: now.Add(time.Minute), Class: "sc-uid", Claim: in.Claim.DeepCopy()}
	}
	runClaims(t, []claimRow{
		{"a label that is passed on has changed", edits{teamLabel, labelled("app.example.com/team", "blue"), refused, labelled("app.example.com/team", "red")}, ours},
		{"one that is not", edits{teamLabel, labelled("x", "blue"), refused, labelled("x", "red")}, "Wait: 1m0s"},
	})
}
