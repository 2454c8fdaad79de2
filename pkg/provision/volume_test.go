// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

type volumeEdit = func(*VolumeInput)

// released is a volume of driver d that is to be deleted: policy Delete, our finalizer, read live.
func released(edits ...volumeEdit) VolumeInput {
	in := VolumeInput{
		Config: config(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME),
		Now:    now, Live: true,
		Volume: &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{
				Name: "v", UID: "v-uid", Finalizers: []string{wellknown.FinalizerVolume},
				Annotations: map[string]string{
					wellknown.AnnProvisionedBy: "d", wellknown.AnnDeletionSecretName: "", wellknown.AnnDeletionSecretNamespace: "",
				},
			},
			Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete, StorageClassName: "sc",
				ClaimRef:               &corev1.ObjectReference{Namespace: "ns1", Name: "data", UID: uid},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased},
		},
	}
	for _, edit := range edits {
		edit(&in)
	}
	return in
}

func phase(p corev1.PersistentVolumePhase) volumeEdit {
	return func(in *VolumeInput) { in.Volume.Status.Phase = p }
}

func policy(p corev1.PersistentVolumeReclaimPolicy) volumeEdit {
	return func(in *VolumeInput) { in.Volume.Spec.PersistentVolumeReclaimPolicy = p }
}

func finalizers(names ...string) volumeEdit {
	return func(in *VolumeInput) { in.Volume.Finalizers = names }
}

func dying(in *VolumeInput) { in.Volume.DeletionTimestamp = gone }

func attached(in *VolumeInput) {
	in.Attachments = []*storagev1.VolumeAttachment{{Spec: storagev1.VolumeAttachmentSpec{NodeName: "n1"}}}
}

func cached(in *VolumeInput) { in.Live = false }

func noSecretOnRecord(in *VolumeInput) {
	in.Volume.Annotations = map[string]string{wellknown.AnnProvisionedBy: "d"}
}

func onRecord(name, namespace string) volumeEdit {
	return func(in *VolumeInput) {
		in.Volume.Annotations[wellknown.AnnDeletionSecretName] = name
		in.Volume.Annotations[wellknown.AnnDeletionSecretNamespace] = namespace
	}
}

func classWith(name string) volumeEdit {
	return func(in *VolumeInput) {
		in.Class = &storagev1.StorageClass{Provisioner: "d", Parameters: map[string]string{
			reserved + "provisioner-secret-name": name, reserved + "provisioner-secret-namespace": "${pvc.namespace}",
		}}
	}
}

func static(driver string) volumeEdit {
	return func(in *VolumeInput) {
		in.Volume.Annotations = nil
		in.Volume.Spec.CSI.Driver = driver
	}
}

func TestNextVolumeStep(t *testing.T) {
	removed := func(in *VolumeInput) { in.Deleted = true }
	const foreign = "external-attacher/d"
	const takenOff = "Ignore: the volume was taken off its claim, and its phase is older than that: kube-controller-manager will make it Available"
	missing := func(d time.Duration) volumeEdit { return func(in *VolumeInput) { in.SecretMissing = now.Add(-d) } }
	for _, c := range []struct {
		name  string
		edits []volumeEdit
		want  string
	}{
		{"T67 everything allows it", nil, "Delete: h with no secret"},
		{"T67 the cache must be confirmed", []volumeEdit{cached}, "Confirm"},
		{"T67 foreign finalizers do not matter", []volumeEdit{finalizers(foreign, wellknown.FinalizerVolume)}, "Delete: h with no secret"},
		{"B015 T76 the driver has removed it", []volumeEdit{func(in *VolumeInput) { in.Deleted = true }}, "Release"},
		{"to be kept when the driver has removed it", []volumeEdit{removed, policy(corev1.PersistentVolumeReclaimRetain)}, "Unprotect"},
		{"available when the driver has removed it", []volumeEdit{removed, phase(corev1.VolumeAvailable)},
			`Reject: PersistentVolume v is to stay, but the driver had deleted its volume "h", or did not know it, before that was said, so that its data is gone`},
		{"available when the driver has removed it, from the cache", []volumeEdit{cached, removed, phase(corev1.VolumeAvailable)}, "Confirm"},
		{"B057 to be kept and being deleted when the driver has removed it", []volumeEdit{removed, dying, policy(corev1.PersistentVolumeReclaimRetain)}, "Release"},
		{"B015 also from the cache", []volumeEdit{cached, func(in *VolumeInput) { in.Deleted = true }}, "Release"},
		{"T68 bound", []volumeEdit{phase(corev1.VolumeBound)}, "Ignore: the volume is not released"},
		{"T68 failed", []volumeEdit{phase(corev1.VolumeFailed)}, "Ignore: the volume is not released"},
		{"T68 available", []volumeEdit{phase(corev1.VolumeAvailable)}, "Ignore: the volume is not released"},
		{"T68 T58 B057 to be kept", []volumeEdit{policy(corev1.PersistentVolumeReclaimRetain)}, "Unprotect"},
		{"T58 to be kept and bound", []volumeEdit{policy(corev1.PersistentVolumeReclaimRetain), phase(corev1.VolumeBound)}, "Unprotect"},
		{"B057 to be kept and being deleted by hand", []volumeEdit{policy(corev1.PersistentVolumeReclaimRetain), dying}, "Unprotect"},
		{"to be recycled", []volumeEdit{policy(corev1.PersistentVolumeReclaimRecycle)}, "Unprotect"},
		{"T68 kept without our finalizer", []volumeEdit{policy(corev1.PersistentVolumeReclaimRetain), finalizers(foreign)}, "Ignore: the volume is to be kept"},
		{"a policy that is not filled in", []volumeEdit{policy("")}, "Ignore: the volume is to be kept"},
		{"T69 deleted before its claim", []volumeEdit{dying, phase(corev1.VolumeBound)}, "Ignore: the volume is not released"},
		{"deleted before its claim is bound", []volumeEdit{dying, phase(corev1.VolumePending)},
			"Reject: PersistentVolume v is being deleted before claim ns1/data was bound to it, and Kubernetes binds no volume that is being deleted"},
		{"deleted before it was seen", []volumeEdit{dying, phase(""), func(in *VolumeInput) { in.Volume.Spec.ClaimRef = nil }},
			"Reject: PersistentVolume v is being deleted and was never released, so that its data is not touched"},
		{"deleted before its claim is bound, and not protected", []volumeEdit{dying, phase(corev1.VolumePending), finalizers(foreign)}, "Ignore: the volume is not released"},
		{"its claim is not bound yet", []volumeEdit{phase(corev1.VolumePending)}, "Ignore: the volume is not released"},
		{"T69 and released then", []volumeEdit{dying}, "Delete: h with no secret"},
		{"T70 handled before", []volumeEdit{dying, finalizers(foreign)}, "Ignore: the volume was handled before"},
		{"released and never protected", []volumeEdit{finalizers()}, "Delete: h with no secret"},
		{"T71 static and bound", []volumeEdit{static("d"), phase(corev1.VolumeBound), finalizers()}, "Protect"},
		{"T71 static and released", []volumeEdit{static("d")}, "Delete: h with no secret"},
		{"T71 static of another driver", []volumeEdit{static("e")}, "Ignore: the volume is gone or not ours"},
		{"made by another driver", []volumeEdit{func(in *VolumeInput) {
			in.Volume.Annotations[wellknown.AnnProvisionedBy], in.Volume.Spec.CSI.Driver = "e", "e"
		}}, "Ignore: the volume is gone or not ours"},
		{"made by another driver, as the annotation says alone", []volumeEdit{func(in *VolumeInput) { in.Volume.Annotations[wellknown.AnnProvisionedBy] = "e" }},
			`Reject: PersistentVolume v has spec.csi.driver "d", and its annotation pv.kubernetes.io/provisioned-by says "e", so that nothing is deleted`},
		{"T71 of another driver, as if it were ours", []volumeEdit{func(in *VolumeInput) { in.Volume.Spec.CSI.Driver = "e" }},
			`Reject: PersistentVolume v has spec.csi.driver "e", and its annotation pv.kubernetes.io/provisioned-by says "d", so that nothing is deleted`},
		{"no finalizer on a dying volume", []volumeEdit{phase(corev1.VolumeBound), dying, finalizers(foreign)}, "Ignore: the volume is not released"},
		{"gone", []volumeEdit{func(in *VolumeInput) { in.Volume = nil }}, "Ignore: the volume is gone or not ours"},
		{"T72 attached", []volumeEdit{attached}, "WaitDetached: n1"},
		{"T72 attached, before any live read", []volumeEdit{attached, cached}, "WaitDetached: n1"},
		{"T72 a driver without attachments", []volumeEdit{attached, func(in *VolumeInput) { in.Capabilities = config().Capabilities }}, "Delete: h with no secret"},
		{"T73 secret on record", []volumeEdit{onRecord("s", "ns"), classWith("other")}, "Delete: h with ns/s"},
		{"B051 the class is gone", []volumeEdit{onRecord("s", "ns")}, "Delete: h with ns/s"},
		{"T73 none on record", []volumeEdit{classWith("other")}, "Delete: h with no secret"},
		{"T73 half a record is none", []volumeEdit{onRecord("s", ""), classWith("other")}, "Delete: h with no secret"},
		{"T74 no record: the class says", []volumeEdit{noSecretOnRecord, classWith("s-${pv.name}")}, "Delete: h with ns1/s-v"},
		{"T74 no record and no class", []volumeEdit{noSecretOnRecord}, "Delete: h with no secret"},
		{"no claim has let it go", []volumeEdit{func(in *VolumeInput) { in.Volume.Spec.ClaimRef = nil }}, takenOff},
		{"no claim has let it go, says the cache", []volumeEdit{cached, func(in *VolumeInput) { in.Volume.Spec.ClaimRef = nil }}, takenOff},
		{"it is kept for a claim by name", []volumeEdit{func(in *VolumeInput) { in.Volume.Spec.ClaimRef.UID = "" }}, takenOff},
		{"no claim, and the driver had removed it before", []volumeEdit{func(in *VolumeInput) { in.Volume.Spec.ClaimRef, in.Deleted = nil, true }}, "Release"},
		{"T74 a template that needs the claim's annotations", []volumeEdit{noSecretOnRecord, classWith("${pvc.annotations['a']}")},
			`Reject: failed to get secretreference for volume v: error resolving value "${pvc.annotations['a']}": invalid tokens: ["pvc.annotations['a']"]`},
		{"the secret is missing", []volumeEdit{onRecord("s", "ns"), missing(time.Minute)}, "Delete: h with ns/s"},
		{"the secret is missing for long", []volumeEdit{onRecord("s", "ns"), missing(2 * time.Minute)}, "Delete: h with ns/s or none"},
		{"not a CSI volume", []volumeEdit{func(in *VolumeInput) { in.Volume.Spec.CSI = nil }}, "Reject: invalid CSI PV"},
		{"the driver cannot delete", []volumeEdit{func(in *VolumeInput) {
			in.Capabilities = capability.Of(nil, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME)
		}},
			"Reject: CSI driver does not support dynamic provisioning: plugin CONTROLLER_SERVICE capability is not reported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := show(NextVolumeStep(released(c.edits...))); got != c.want {
				t.Errorf("got\n%s, want\n%s", got, c.want)
			}
		})
	}
}

// TestNoClaimForATemplate (T74): a volume without a claim has nothing to fill the templates of its class with.
func TestNoClaimForATemplate(t *testing.T) {
	in := released(noSecretOnRecord, classWith("s"))
	in.Volume.Spec.ClaimRef = nil
	if secret, err := DeletionSecret(in.Volume, in.Class); secret != nil || err != nil {
		t.Error(secret, err)
	}
}

func TestVolumeClass(t *testing.T) {
	in := released()
	if got := VolumeClass(in.Volume); got != "sc" {
		t.Error(got)
	}
	in.Volume.Annotations[wellknown.AnnBetaStorageClass] = "old"
	if got := VolumeClass(in.Volume); got != "old" {
		t.Error(got)
	}
}

func TestStillAttached(t *testing.T) {
	if got, want := StillAttached("v", "n1"), "persistentvolume v is still attached to node n1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
