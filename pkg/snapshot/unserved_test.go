// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// others: a binder for all, and a content of a driver that is not beside it, whose name is known already.
func others(i *SnapshotInput) {
	taken(i)
	all(i)
	i.Snapshot.Status = &snapv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr("snapcontent-u1"), ReadyToUse: ptr(false)}
}

func toldOf(i *SnapshotInput) { i.UnservedTold = true }

func aged(age time.Duration) func(*SnapshotInput) {
	return func(i *SnapshotInput) { i.Content.CreationTimestamp = metav1.NewTime(now.Add(-age)) }
}

func going(age time.Duration) func(*SnapshotInput) {
	return func(i *SnapshotInput) {
		deleted(i)
		i.Content.DeletionTimestamp = ptr(metav1.NewTime(now.Add(-age)))
		i.Content.Annotations = map[string]string{wellknown.AnnBeingDeleted: "yes"}
		i.Claim = nil
	}
}

// Each row of a content that waits was seen to fail against a machine that only waits for the driver (W32).
func TestDriverThatNobodyServesIsToldOf(t *testing.T) {
	abandoned := func(i *SnapshotInput) { i.Content.Annotations[wellknown.AnnDriverGone] = "yes" }
	// A binder beside the driver of node n2, and a content of that driver that was made for n1.
	node := func(i *SnapshotInput) {
		i.Options.Distributed, i.Options.Node = true, "n2"
		if i.Content.Annotations == nil {
			i.Content.Annotations = map[string]string{}
		}
		i.Content.Labels = map[string]string{wellknown.LabelManagedBy: "n1"}
		i.Snapshot.Status = &snapv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr("snapcontent-u1"), ReadyToUse: ptr(false)}
	}
	ahead := func(i *SnapshotInput) {
		i.Content.Annotations = map[string]string{wellknown.AnnBeingCreated: "yes", wellknown.AnnMadeAt: madeAt(now)}
	}
	for _, c := range []struct {
		name string
		in   SnapshotInput
		want string
	}{
		{"S96 our own mark says nothing of another node", in(taken, node, ahead, aged(10*time.Minute)), "on node n1 has said nothing about VolumeSnapshotContent snapcontent-u1 for ten minutes"},
		{"S96 a slow driver there is waited for", in(taken, node, ahead, aged(9*time.Minute)), "wait 1m0s"},
		{"S96 a status from there says that it is served", in(taken, node, ahead, aged(time.Hour), func(i *SnapshotInput) {
			i.Content.Status = &snapv1.VolumeSnapshotContentStatus{ReadyToUse: ptr(false)}
		}), "ignore"},
		{"S96 so does a mark that it got from there", in(taken, node, aged(time.Hour), func(i *SnapshotInput) {
			i.Content.Annotations = map[string]string{wellknown.AnnBeingCreated: "yes"}
		}), "ignore"},
		{"S96 our own node is served, however slow it is", in(taken, node, ahead, aged(time.Hour), func(i *SnapshotInput) { i.Options.Node = "n1" }), "ignore"},
		{"S96 so is each when our other half serves all", in(taken, node, ahead, aged(time.Hour), func(i *SnapshotInput) { i.Options.Node = "" }), "ignore"},
		{"S96 a content of no node", in(taken, node, ahead, aged(time.Hour), func(i *SnapshotInput) { i.Content.Labels = nil }), "is for no node"},
		{"S96 deletion that a node does not do", in(taken, node, going(2*time.Minute)), "sidecar of driver sim.csi.example on node n1 to delete it"},
		{"S96 deletion that is forced", in(taken, node, going(time.Second), abandoned), "abandon"},
		{"S96 deletion on our own node", in(taken, node, going(time.Hour), abandoned, func(i *SnapshotInput) { i.Options.Node = "n1" }), "ignore"},
		{"B079 W32 untouched for two minutes", in(others, aged(2*time.Minute)), "No sidecar of driver sim.csi.example has touched"},
		{"B079 one that is not two minutes old is waited for", in(others, aged(time.Minute)), "wait 1m0s"},
		{"B079 told once", in(others, aged(time.Hour), toldOf), "ignore"},
		{"B079 a mark says that somebody works on it", in(others, aged(time.Hour), func(i *SnapshotInput) {
			i.Content.Annotations = map[string]string{wellknown.AnnBeingCreated: "yes"}
		}), "ignore"},
		{"B079 so does a status", in(others, aged(time.Hour), func(i *SnapshotInput) {
			i.Content.Status = &snapv1.VolumeSnapshotContentStatus{ReadyToUse: ptr(false)}
		}), "ignore"},
		{"B079 deletion nobody does", in(others, going(2*time.Minute)), "annotate the content with csi-tandem.io/driver-gone=yes"},
		{"B079 deletion that is not two minutes old", in(others, going(30*time.Second)), "wait 1m30s"},
		{"B079 deletion told once", in(others, going(time.Hour), toldOf), "ignore"},
		{"B079 deletion that is forced", in(others, going(time.Second), abandoned), "abandon"},
		{"B079 any other value forces nothing", in(others, going(time.Second), func(i *SnapshotInput) { i.Content.Annotations[wellknown.AnnDriverGone] = "true" }), "wait 1m59s"},
		{"B079 our own half still asks the driver", in(taken, going(time.Hour), abandoned), "ignore"},
		{"B079 held by others only", in(others, going(time.Hour), abandoned, func(i *SnapshotInput) { i.Content.Finalizers = []string{"x/y"} }), "ignore"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := said(NextSnapshotStep(c.in)); !strings.Contains(got, c.want) {
				t.Errorf("%s", cmp.Diff(c.want, got))
			}
		})
	}
}

func said(step SnapshotStep) string {
	switch step := step.(type) {
	case Unserved:
		return step.Message
	case Wait:
		return "wait " + step.After.String()
	case AbandonContent:
		return "abandon " + step.Message
	case Ignore:
		return "ignore " + step.Why
	default:
		return "something else"
	}
}
