// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// All objects come, of each page, no page is asked for that nobody needs, and one that does not come is told. Catches a search that
// ends with the first page, that reads a large cluster to its end though it has found what it wanted, or that takes half a list for all.
func TestFetchAll(t *testing.T) {
	lost := errors.New("connection lost")
	rows := map[string]struct {
		fails     map[int]error
		enough    int
		seen, ask int
		err       error
	}{
		"to the end":         {nil, 5000, 1203, 3, nil},
		"found in the first": {nil, 7, 7, 1, nil},
		"found in the next":  {nil, 501, 501, 2, nil},
		"the first is lost":  {map[int]error{1: lost}, 5000, 0, 1, lost},
		"the last is lost":   {map[int]error{3: lost}, 5000, 1000, 3, lost},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			p := newPages(1203)
			p.fails = row.fails
			seen := map[string]bool{}
			var last error
			for claim, err := range kube.FetchAll[*corev1.PersistentVolumeClaim](t.Context(), p, "", metav1.ListOptions{}) {
				if last = err; err != nil {
					continue
				}
				if seen[claim.Name] = true; len(seen) == row.enough {
					break
				}
			}
			if len(seen) != row.seen || len(p.asked) != row.ask || !errors.Is(last, row.err) {
				t.Errorf("%d objects by %d questions, and %v; want %d, %d, %v", len(seen), len(p.asked), last, row.seen, row.ask, row.err)
			}
		})
	}
}

// A page with something else in it is an error. Catches a list that passes over what it does not know.
func TestFetchAllRefusesStrangers(t *testing.T) {
	count := 0
	for _, err := range kube.FetchAll[*corev1.PersistentVolume](t.Context(), newPages(1), "", metav1.ListOptions{}) {
		if count++; err == nil {
			t.Error("a claim passes for a volume")
		}
	}
	if count != 1 {
		t.Errorf("%d answers, want one error", count)
	}
}
