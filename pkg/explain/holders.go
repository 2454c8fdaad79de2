// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// lifters say who takes a finalizer off, and when.
var lifters = map[string]string{
	"kubernetes.io/pvc-protection": "Kubernetes, when no pod uses the claim any more",
	"kubernetes.io/pv-protection":  "Kubernetes, when the volume is not bound any more",

	wellknown.FinalizerVolume:           "the provisioner of the driver, when the driver has deleted the volume, or when the reclaim policy keeps it",
	wellknown.FinalizerCloneSource:      "the provisioner, when the claim is being deleted and no clone of it is being made",
	wellknown.FinalizerSnapshotAsSource: "the provisioner, when no claim is being restored from the snapshot",
	wellknown.FinalizerSnapshotSource:   "whoever binds snapshots, when the VolumeSnapshot is being deleted and its content is gone or kept",
	wellknown.FinalizerSnapshotBound:    "whoever binds snapshots, when the VolumeSnapshot is being deleted and its content is gone or kept",
	wellknown.FinalizerSnapshotInGroup:  "whoever binds group snapshots, when the group is deleted",
	wellknown.FinalizerContent:          "the snapshotter of the driver, when the driver has deleted the snapshot, or when the deletion policy keeps it",
	wellknown.FinalizerSourceClaim:      "whoever binds snapshots, when no snapshot of the claim is being taken",
}

// attacher begins the finalizers of the program that attaches volumes.
const attacher = "external-attacher/"

func lifter(finalizer string) string {
	if who, ok := lifters[finalizer]; ok {
		return who
	}
	if strings.HasPrefix(finalizer, attacher) {
		return "the external-attacher, when the volume is attached to no node any more"
	}
	return "somebody else, neither Kubernetes nor these sidecars; ask whoever put it there"
}

// nameSnapshots says at the finalizer of a claim that is to go which snapshots of it are wanted. One that can never be taken holds it for
// ever, and shows only at the snapshot.
func (l *claimLook) nameSnapshots(ctx context.Context) {
	i := slices.IndexFunc(l.report.Holders, func(h Holder) bool { return h.Finalizer == wellknown.FinalizerSourceClaim })
	if i < 0 || l.claim.DeletionTimestamp == nil {
		return
	}
	var names []string
	l.client.apart(func() { // without the right the holder alone is told
		_ = list(ctx, l.look, l.claim.Namespace, metav1.ListOptions{}, func(s *snapv1.VolumeSnapshot) {
			if ptr.Deref(s.Spec.Source.PersistentVolumeClaimName, "") == l.claim.Name && snapshot.UsesSource(s) {
				names = append(names, s.Name)
			}
		})
	})
	if slices.Sort(names); len(names) > 0 {
		l.report.Holders[i].Lifted += fmt.Sprintf("; VolumeSnapshots that are not taken yet: %s. See why with snapshotter explain -n %s %s, or delete them", some(names), l.claim.Namespace, names[0])
	}
}

// hold tells who keeps an object from going.
func (l *look) hold(obj kube.Object, kind string) {
	for _, f := range obj.GetFinalizers() {
		l.report.Holders = append(l.report.Holders, Holder{
			Object: kind + " " + kube.IndexValue(kube.KeyOf(obj)), Finalizer: f, Lifted: lifter(f),
		})
	}
}
