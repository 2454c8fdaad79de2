// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// clone is a claim from another claim that is in order in every respect.
func clone(edits ...func(*ClaimInput)) []func(*ClaimInput) {
	return append([]func(*ClaimInput){can(csi.ControllerServiceCapability_RPC_CLONE_VOLUME), fromClaim, func(in *ClaimInput) {
		in.Source = &SourceState{
			Claim: &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns1", Name: "src", UID: "src-uid", Finalizers: []string{wellknown.FinalizerCloneSource}},
				Spec: corev1.PersistentVolumeClaimSpec{
					StorageClassName: of("other"), VolumeName: "src-pv",
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
				Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
			},
			Volume: &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: "src-pv"},
				Spec: corev1.PersistentVolumeSpec{
					ClaimRef:               &corev1.ObjectReference{Namespace: "ns1", Name: "src", UID: "src-uid"},
					PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "src-handle"}},
				},
				Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
			},
		}
	}}, edits...)
}

func sourceIs(edit func(*corev1.PersistentVolumeClaim)) func(*ClaimInput) {
	return func(in *ClaimInput) { edit(in.Source.Claim) }
}

func sourceVolumeIs(edit func(*corev1.PersistentVolume)) func(*ClaimInput) {
	return func(in *ClaimInput) { edit(in.Source.Volume) }
}

func TestClone(t *testing.T) {
	const refused = "Reject: error getting handle for DataSource Type PersistentVolumeClaim by Name src: "
	const invalid = refused + "claim in dataSource not bound or invalid: "
	phase := func(p corev1.PersistentVolumeClaimPhase) func(*ClaimInput) {
		return sourceIs(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = p })
	}
	dying := sourceIs(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = gone })
	runClaims(t, []claimRow{
		{"T44 in order, classes differ", clone(), ours},
		{"T44 not protected yet", clone(sourceIs(func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil })), "ProtectSource: {PersistentVolumeClaim ns1 src}"},
		{"T45 not there", clone(func(in *ClaimInput) { *in.Source = SourceState{} }), refused + `error getting PVC src (namespace "ns1") from api server: not found`},
		{"T45 cannot be read", clone(func(in *ClaimInput) { *in.Source = SourceState{ClaimErr: errors.New("no")} }), refused + `error getting PVC src (namespace "ns1") from api server: no`},
		{"T45 pending", clone(phase(corev1.ClaimPending)), "waiting " + refused + "the PVC DataSource src must have a status of Bound.  Got Pending"},
		{"T45 lost", clone(phase(corev1.ClaimLost)), refused + "the PVC DataSource src must have a status of Bound.  Got Lost"},
		{"T45 terminating", clone(dying, sourceIs(func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"foreign"} })), refused + "the PVC DataSource src is currently being deleted"},
		{"B031 terminating, but a clone may have been interrupted", clone(dying), ours},
		{"B005 terminating, and the claim came after", clone(dying, cameLate), refused + "the PVC DataSource src is currently being deleted"},
		{"T45 no class", clone(sourceIs(func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil })), refused + "the source PVC (src) storageclass cannot be empty"},
		{"T45 the claim has no class field", clone(annotate(wellknown.AnnBetaStorageClass, "sc"), func(in *ClaimInput) { in.Claim.Spec.StorageClassName = nil }), refused + "the requested PVC (data) storageclass cannot be empty"},
		{"T47 smaller", clone(asks("1Mi")), refused + "error, new PVC request must be greater than or equal in size to the specified PVC data source, requested 1048576 but source is 1073741824"},
		{"T47 larger", clone(asks("2Gi")), ours},
		{"no volume name", clone(sourceIs(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "" })), refused + "volume name is empty in source PVC src"},
		{"T46 volume missing", clone(func(in *ClaimInput) { in.Source.Volume = nil }), invalid + "PersistentVolume src-pv not found"},
		{"T46 volume unreadable", clone(func(in *ClaimInput) { in.Source.Volume, in.Source.VolumeErr = nil, errors.New("no") }), invalid + "no"},
		{"T46 not CSI", clone(sourceVolumeIs(func(v *corev1.PersistentVolume) { v.Spec.CSI = nil })), invalid + "PersistentVolume src-pv is not a CSI volume"},
		{"T46 other driver", clone(sourceVolumeIs(func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "e" })), invalid + "PersistentVolume src-pv is of driver e"},
		{"T46 unbound", clone(sourceVolumeIs(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil })), invalid + "PersistentVolume src-pv has no claim"},
		{"T46 other UID", clone(sourceVolumeIs(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "x" })), invalid + "PersistentVolume src-pv is bound to another claim"},
		{"T46 other namespace", clone(sourceVolumeIs(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "x" })), invalid + "PersistentVolume src-pv is bound to another claim"},
		{"T46 other name", clone(sourceVolumeIs(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Name = "x" })), invalid + "PersistentVolume src-pv is bound to another claim"},
		{"T46 released", clone(sourceVolumeIs(func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })), invalid + "PersistentVolume src-pv is Released"},
	})
}

func TestCloneModes(t *testing.T) {
	modes := map[string]*corev1.PersistentVolumeMode{
		"nil": nil, "Filesystem": of(corev1.PersistentVolumeFilesystem), "Block": of(corev1.PersistentVolumeBlock),
	}
	for from, source := range modes {
		for to, claim := range modes {
			t.Run("T48 "+from+" to "+to, func(t *testing.T) {
				in := plain(clone(func(in *ClaimInput) { in.Source.Claim.Spec.VolumeMode, in.Claim.Spec.VolumeMode = source, claim })...)
				want := ours
				if (from == "Block") != (to == "Block") {
					want = "Reject: error getting handle for DataSource Type PersistentVolumeClaim by Name src: " +
						"the source PVC and destination PVCs must have the same volume mode for cloning.  "
					if from == "Block" {
						want += "Source is Block, but new PVC requested Filesystem"
					} else {
						want += "Source is Filesystem, but new PVC requested Block"
					}
				}
				if got := show(NextClaimStep(in)); got != want {
					t.Errorf("got\n%s, want\n%s", got, want)
				}
			})
		}
	}
}
