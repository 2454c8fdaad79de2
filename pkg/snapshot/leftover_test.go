// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

func TestWhatASnapshotLeaves(t *testing.T) {
	type edit = func(*snapv1.VolumeSnapshotContent)
	made := func(after time.Duration) edit {
		return func(c *snapv1.VolumeSnapshotContent) {
			c.Annotations = map[string]string{wellknown.AnnMadeAt: madeAt(past.Add(-after))}
		}
	}
	going := func(c *snapv1.VolumeSnapshotContent) { c.DeletionTimestamp = ptr(past) }
	mark := func(c *snapv1.VolumeSnapshotContent) { c.Annotations[wellknown.AnnBeingDeleted] = "yes" }
	own, every := SnapshotOptions{Driver: driverName}, SnapshotOptions{Scope: All}
	for _, r := range []struct {
		name    string
		state   SnapshotState
		live    bool
		options SnapshotOptions
		edits   []edit
		want    SnapshotStep
	}{
		{"gone, says the cache", Gone, false, own, []edit{made(0)}, FetchSnapshot{}},
		{"gone", Gone, true, own, []edit{made(0)}, DeleteContent{}},
		{"clocks differ", Gone, true, own, []edit{made(time.Minute)}, DeleteContent{}},
		{"there", Alive, true, own, []edit{made(0)}, Ignore{}},
		{"going, which is for others to see to", Deleting, false, own, []edit{made(0)}, Ignore{}},
		{"for a sidecar of others, in the same order", Gone, true, every, []edit{made(0)}, DeleteContent{}},
		{"for a sidecar of others, then the mark", Gone, true, every, []edit{made(0), going}, MarkContent{}},
		{"which is all", Gone, true, every, []edit{made(0), going, mark}, Ignore{}},
		{"our other half needs none", Gone, true, own, []edit{made(0), going}, Ignore{}},
		{"our other half on a node sees no snapshots", Gone, true, SnapshotOptions{Driver: driverName, Distributed: true}, []edit{made(0), going}, MarkContent{}},
		{"of another driver", Gone, true, SnapshotOptions{Driver: "other"}, []edit{made(0)}, Ignore{}},
		{"a copy was made later", Gone, true, own, []edit{made(time.Hour)}, Ignore{}},
		{"or elsewhere, with a clock before ours", Gone, true, own, []edit{made(-time.Hour)}, Ignore{}},
		{"made by another program", Gone, true, own, nil, Ignore{}},
		{"a record that is none", Gone, true, own, []edit{func(c *snapv1.VolumeSnapshotContent) { c.Annotations = map[string]string{wellknown.AnnMadeAt: "?"} }}, Ignore{}},
		{"retained", Gone, true, own, []edit{made(0), func(c *snapv1.VolumeSnapshotContent) {
			c.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain
		}}, Ignore{}},
		{"was retained", Gone, true, own, []edit{made(0), mark}, Ignore{}},
		{"imported", Gone, true, own, []edit{made(0), func(c *snapv1.VolumeSnapshotContent) {
			c.Spec.Source = snapv1.VolumeSnapshotContentSource{SnapshotHandle: ptr("s-1")}
		}}, Ignore{}},
		{"points elsewhere by now", Gone, true, own, []edit{made(0), func(c *snapv1.VolumeSnapshotContent) { c.Spec.VolumeSnapshotRef.UID = "u2" }}, Ignore{}},
	} {
		c := in(taken).Content
		for _, e := range r.edits {
			e(c)
		}
		if diff := cmp.Diff(r.want, NextForLeftover(LeftoverInput{c, r.state, r.live, r.options}), anyWhy); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.name, diff)
		}
	}
}
