// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKeep: P-11, an informer that trims what it does not need still holds an object for each in the cluster; one that
// drops it without telling leaves the rooms with what is true no more.
func TestKeep(t *testing.T) {
	mine := func(v *corev1.PersistentVolume) bool { return v.Annotations["node"] == "n1" }
	i := NewInformer[*corev1.PersistentVolume](nil, InformerOptions[*corev1.PersistentVolume]{
		Keep: mine, Packed: true,
		// What is kept is decided before anything is taken away.
		Trim: func(v *corev1.PersistentVolume) { v.Annotations = nil },
	})
	var told []string
	i.OnChange(func(c Change[*corev1.PersistentVolume]) {
		told = append(told, fmt.Sprintf("%s deleted %t phase %s", c.Object().Name, c.Deleted, c.Object().Status.Phase))
	})
	version := 0
	volume := func(name, node string, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		version++
		return &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: fmt.Sprint(version), Annotations: map[string]string{"node": node}},
			Status:     corev1.PersistentVolumeStatus{Phase: phase},
		}
	}
	in := intake[*corev1.PersistentVolume]{i}
	expect := func(err error, lines ...string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(lines, told); d != "" {
			t.Error(d)
		}
		told = nil
	}
	list := func(version string, volumes ...*corev1.PersistentVolume) error {
		var marks []any
		for _, v := range volumes {
			key, kept, err := in.see(v)
			if err != nil {
				return err
			}
			if kept {
				marks = append(marks, mark(key))
			}
		}
		return in.Replace(marks, version)
	}
	var all []*corev1.PersistentVolume
	for n := range 1000 {
		all = append(all, volume(fmt.Sprint("other-", n), "n2", corev1.VolumeBound))
	}
	expect(list("1", append(all, volume("a", "n1", corev1.VolumeBound))...), "a deleted false phase Bound")
	if kept := len(i.All()); kept != 1 {
		t.Errorf("PP-11: %d of 1001 objects are kept", kept)
	}
	expect(in.Add(volume("b", "n2", corev1.VolumeBound)))
	expect(in.Update(volume("b", "n2", corev1.VolumeReleased)))
	expect(in.Delete(volume("b", "n2", corev1.VolumeReleased)))
	expect(in.Add(volume("c", "n1", corev1.VolumeBound)), "c deleted false phase Bound")
	expect(in.Update(volume("c", "n2", corev1.VolumeReleased)), "c deleted true phase Released")
	expect(in.Delete(volume("c", "n2", corev1.VolumeReleased)))
	expect(list("2", volume("a", "n2", corev1.VolumeBound)), "a deleted true phase Bound")
	if _, ok := i.Lookup(Key{Name: "a"}); ok {
		t.Error("what is kept no more is still found")
	}
}
