// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestNumbersArriveWhole: a time in nanoseconds and a size in bytes are what the driver said, to the last digit. Catches a difference
// that is made by way of floats.
func TestNumbersArriveWhole(t *testing.T) {
	h := kit.New(t)
	at, size := int64(1767268800123456789), int64(9007199254740993)
	after, err := kube.PatchOwnStatus(h.Ctx, h.API, stored(t, h, kit.NamedContent("c")), func(c *kube.Content) {
		c.Status = &snapv1.VolumeSnapshotContentStatus{CreationTime: &at, RestoreSize: &size}
	})
	if err != nil || *after.Status.CreationTime != at || *after.Status.RestoreSize != size {
		t.Errorf("wrote %d and %d, got %+v, %v", at, size, after.Status, err)
	}
	later := at + 1
	after, err = kube.PatchOwnStatus(h.Ctx, h.API, after, func(c *kube.Content) { c.Status.CreationTime = &later })
	if err != nil || *after.Status.CreationTime != later {
		t.Errorf("a difference of one is none: %v, %v", *after.Status.CreationTime, err)
	}
}

// TestDifferences: what is sent makes one object of the other, however parts of it come, change and go.
func TestDifferences(t *testing.T) {
	ready, size, text := true, int64(1), "x"
	full := &snapv1.VolumeSnapshotContentStatus{ReadyToUse: &ready, RestoreSize: &size, SnapshotHandle: &text, Error: &snapv1.VolumeSnapshotError{Message: &text}}
	for name, c := range map[string]struct {
		from, to *snapv1.VolumeSnapshotContentStatus
	}{
		"a part comes":           {nil, full},
		"a part goes":            {full, nil},
		"an empty part comes":    {nil, &snapv1.VolumeSnapshotContentStatus{}},
		"what is in a part goes": {full, &snapv1.VolumeSnapshotContentStatus{}},
		"one of its fields goes": {full, &snapv1.VolumeSnapshotContentStatus{ReadyToUse: &ready, RestoreSize: &size, SnapshotHandle: &text}},
		"nothing changes":        {full, full.DeepCopy()},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.New(t)
			content := stored(t, h, kit.NamedContent("c", func(c *kube.Content) { c.Status = nil }))
			content, err := kube.PatchStatus(h.Ctx, h.API, content, func(o *kube.Content) { o.Status = c.from })
			if err != nil {
				t.Fatal(err)
			}
			before := len(h.API.Requests())
			after, err := kube.PatchStatus(h.Ctx, h.API, content, func(o *kube.Content) { o.Status = c.to.DeepCopy() })
			if diff := cmp.Diff(c.to, after.Status); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if sends := len(h.API.Requests()) > before; sends == cmp.Equal(c.from, c.to) {
				t.Errorf("sent %v", sends)
			}
		})
	}
}
