// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

func leaseOf(noted string, transitions int32) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{UID: "l", ResourceVersion: "1"}, Spec: coordinationv1.LeaseSpec{LeaseTransitions: ptr.To(transitions)}}
	if noted != "" {
		kube.SetAnnotation(lease, wellknown.AnnLed, noted)
	}
	return lease
}

// TestNoteTenure: times in a row are noted as one row, and whatever is in doubt begins a new one. Catches a row that goes on over a time of somebody
// who left the note as it was.
func TestNoteTenure(t *testing.T) {
	for name, c := range map[string]struct {
		noted       string
		before, now int32
		want        string
	}{
		"the first of all":               {"", 0, 0, "0-0"},
		"the first of its kind":          {"", 4, 5, "5-5"},
		"after one of its kind":          {"5-5", 5, 6, "5-6"},
		"after many":                     {"5-8", 8, 9, "5-9"},
		"while it leads":                 {"5-8", 8, 8, "5-8"},
		"after others":                   {"5-8", 9, 10, "10-10"},
		"the note was removed":           {"", 8, 8, "8-8"},
		"the note is of a time to come":  {"5-9", 8, 9, "9-9"},
		"the note is the wrong way":      {"9-8", 8, 9, "9-9"},
		"the note is no numbers":         {"a-8", 8, 9, "9-9"},
		"the note has one number":        {"8", 8, 9, "9-9"},
		"the note has too many":          {"5-8-8", 8, 9, "9-9"},
		"somebody has set the count low": {"5-8", 2, 3, "3-3"},
	} {
		lease := leaseOf(c.noted, c.now)
		kube.NoteTenure(lease, leaseOf(c.noted, c.before))
		if d := cmp.Diff(c.want, lease.Annotations[wellknown.AnnLed]); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if got := kube.TenureOf(lease); got.Last != int64(c.now) || !got.Covers(got.String()) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestCovers: only what is certain is covered.
func TestCovers(t *testing.T) {
	tenure := kube.TenureOf(leaseOf("5-8", 8))
	for text, want := range map[string]bool{
		"l/5": true, "l/8": true, "l/4": false, "l/9": false, "m/6": false, "/6": false, "6": false, "": false, "l/": false, "l/x": false, "l/6/6": false,
	} {
		if got := tenure.Covers(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	// Others hold it by now: what is noted is not about them.
	if kube.TenureOf(leaseOf("5-8", 9)).Covers("l/8") {
		t.Error("a time of others is covered")
	}
}
