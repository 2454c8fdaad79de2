// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// FuzzClaim: whatever stands in class and claim, the step is one that can be done; a request has no reserved
// key but those that are asked for, no secret, a name that Kubernetes takes, and is the same each time.
func FuzzClaim(f *testing.F) {
	f.Add("fstype", "xfs", "csi.storage.k8s.io/provisioner-secret-name", "${pvc.annotations['x']}", "x", "s", "n1", uint8(0))
	f.Add("csi.storage.k8s.io/foo", "", "csi.storage.k8s.io/secret-name", "s", "volume.kubernetes.io/storage-provisioner", "d", "n3", uint8(255))
	f.Add("csi-tandem.io/pvc-label/x", "y", "zone", "b", "x", strings.Repeat("long", 2000), "", uint8(14))
	f.Add("csi.storage.k8s.io/pvc/name", "mine", "FsType", "", "a b", "é", "n2", uint8(1))
	f.Add("zone", "a", "zone", "b", "volume.beta.kubernetes.io/storage-class", "sc", "n1", uint8(16))
	f.Add("csiProvisionerSecretName", "${pv.name}", "csiProvisionerSecretNamespace", "${pvc.namespace}", "x", `[{"zone":"b"}]`, "", uint8(32))
	f.Add("csi.storage.k8s.io/secret-name", "${pvc.annotations['x']}", "csi.storage.k8s.io/secret-namespace", "ns", "x", "..", "", uint8(63))
	f.Fuzz(func(t *testing.T, key, value, secondKey, second, annotation, annotated, selected string, choice uint8) {
		in := plain(inZones, parameters(key, value, secondKey, second), annotate(annotation, annotated), labelled(annotation, annotated))
		has := func(bit int) bool { return choice>>bit&1 != 0 }
		if in.Claim.Annotations[wellknown.AnnSelectedNode] == "" && selected != "" {
			node(selected)(&in)
		}
		in.ExtraCreateMetadata, in.Places.Strict = has(0), has(1)
		if has(2) {
			in.Metadata = Metadata{ClaimLabels: []string{annotation}, ClaimAnnotations: []string{annotation}}
		}
		if has(3) {
			in.NameTemplate = "{namespace}-{name}-{uid}"
		}
		if has(4) {
			in.Class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: secondKey, Values: []string{second, value}}}}}
		}
		if has(5) {
			restore()[1](&in)
			restore()[2](&in)
			in.RestoreTopology, in.RestoreSize = PreferSource, GrowSmaller
			in.Source.Content.Annotations = map[string]string{wellknown.AnnSourceTopology: annotated}
		}
		step := NextClaimStep(in)
		if again := show(NextClaimStep(in)); again != show(step) {
			t.Errorf("%s and then %s", show(step), again)
		}
		switch s := step.(type) {
		case Create:
			expectAttempt(t, in, s.Attempt)
			other, _ := NextClaimStep(in).(Create)
			if d := cmp.Diff(s.Attempt.Request, other.Attempt.Request, protocmp.Transform()); d != "" {
				t.Error("the second request is another one", d)
			}
		case Reject:
			if s.Err == nil || fault.Sentence(s.Err) == "" {
				t.Error("a refusal without a reason")
			}
		}
	})
}

func expectAttempt(t *testing.T, in ClaimInput, attempt *Attempt) {
	t.Helper()
	request := attempt.Request
	own := map[string]bool{wellknown.ParamPVCName: true, wellknown.ParamPVCNamespace: true, wellknown.ParamPVName: true}
	for key := range request.GetParameters() {
		if strings.HasPrefix(key, reserved) && !(in.ExtraCreateMetadata && own[key]) {
			t.Errorf("%q reaches the driver", key)
		}
	}
	if len(request.GetSecrets()) > 0 {
		t.Error("a remembered request has secrets")
	}
	if len(validation.IsDNS1123Subdomain(request.GetName())) > 0 || request.GetName() != attempt.Volume.Name || !strings.Contains(request.GetName(), uid) {
		t.Errorf("driver and cluster know %q and %q", request.GetName(), attempt.Volume.Name)
	}
	if len(request.GetVolumeCapabilities()) == 0 || request.GetCapacityRange().GetRequiredBytes() <= 0 {
		t.Errorf("an incomplete request: %v", request)
	}
	places := request.GetAccessibilityRequirements()
	if len(places.GetRequisite()) != len(places.GetPreferred()) || places != nil && len(places.GetRequisite()) == 0 {
		t.Errorf("a requirement of %d and %d", len(places.GetRequisite()), len(places.GetPreferred()))
	}
	if !hasFinalizer(attempt.Volume.Finalizers, wellknown.FinalizerVolume) || attempt.Volume.Spec.ClaimRef.UID != in.Claim.UID {
		t.Error("a volume that could be lost")
	}
}

// FuzzAnswer: whatever a driver answers, a volume that is bound is one that the claim asked for, and every
// error has a consequence.
func FuzzAnswer(f *testing.F) {
	f.Add("h", int64(1), "key", "value", uint32(13), uint8(0))
	f.Add("", int64(-1), "", "", uint32(0), uint8(255))
	f.Add("h", int64(1<<62), "storage.kubernetes.io/csiProvisionerIdentity", "x", uint32(8), uint8(7))
	f.Fuzz(func(t *testing.T, id string, size int64, key, value string, code uint32, choice uint8) {
		in := plain(withTopology, node("n1"))
		attempt := created(t, in)
		if choice&1 != 0 {
			attempt = created(t, plain(restore()...))
		}
		attempt.Open = choice&2 != 0
		claim := in.Claim
		if choice&4 != 0 {
			claim = nil
		}
		volume := &csi.Volume{VolumeId: id, CapacityBytes: size, VolumeContext: map[string]string{key: value},
			AccessibleTopology: []*csi.Topology{nil, {Segments: map[string]string{key: value}}}}
		if choice&8 != 0 {
			volume.ContentSource = &csi.VolumeContentSource{}
		}
		answer := Answer{Attempt: attempt, Now: now, Volume: volume, Claim: claim}
		outcome := AfterCreate(answer)
		if show(AfterCreate(answer)) != show(outcome) {
			t.Errorf("%s and then %s", show(outcome), show(AfterCreate(answer)))
		}
		switch o := outcome.(type) {
		case Provisioned:
			expectVolume(t, o.Attempt, volume)
		case Undo:
			if o.Handle == "" || o.Handle != id {
				t.Errorf("volume %q is undone by %q", id, o.Handle)
			}
		}
		failed := AfterCreate(Answer{Attempt: attempt, Now: now, Err: failure(codes.Code(code%20 + 1)), Claim: claim})
		if failed == nil {
			t.Error("no outcome")
		}
		if _, made := failed.(Provisioned); made {
			t.Error("an error has made a volume")
		}
	})
}

func expectVolume(t *testing.T, attempt *Attempt, volume *csi.Volume) {
	t.Helper()
	built, err := BuildVolume(attempt, volume)
	if err != nil {
		t.Error("it is to be saved and cannot be built:", err)
		return
	}
	request := attempt.Request
	if built.Spec.Capacity.Storage().Value() < request.GetCapacityRange().GetRequiredBytes() || built.Spec.CSI.VolumeHandle == "" {
		t.Errorf("a volume of %v with handle %q", built.Spec.Capacity.Storage(), built.Spec.CSI.VolumeHandle)
	}
	if request.GetVolumeContentSource() != nil && volume.GetContentSource() == nil {
		t.Error("a volume without the data of its source is bound")
	}
	if again, _ := BuildVolume(attempt, volume); cmp.Diff(built, again) != "" {
		t.Error("the second volume is another one")
	}
}

// FuzzVolume: a volume is deleted only when it is released, ours, to be deleted, and was read live.
func FuzzVolume(f *testing.F) {
	f.Add("Released", "Delete", "d", "d", "handle", "s", "ns", uint8(7))
	f.Add("Bound", "Retain", "e", "", "", "", "", uint8(0))
	f.Add("Released", "Delete", "", "d", "h", "", "x", uint8(255))
	f.Fuzz(func(t *testing.T, phase, policy, by, driver, handle, secret, namespace string, choice uint8) {
		volume := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "v", Annotations: map[string]string{}},
			Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimPolicy(policy),
				ClaimRef:                      &corev1.ObjectReference{Namespace: namespace, Name: secret},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.PersistentVolumePhase(phase)},
		}
		has := func(bit int) bool { return choice>>bit&1 != 0 }
		if has(0) {
			volume.Finalizers = []string{wellknown.FinalizerVolume}
		}
		if has(1) {
			volume.Annotations[wellknown.AnnProvisionedBy] = by
		}
		if has(2) {
			volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}
		}
		if has(3) {
			volume.Annotations[wellknown.AnnDeletionSecretName], volume.Annotations[wellknown.AnnDeletionSecretNamespace] = secret, namespace
		}
		if has(4) {
			volume.DeletionTimestamp = gone
		}
		in := VolumeInput{Config: config(), Now: now, Volume: volume, Live: has(5)}
		in.Class = &storagev1.StorageClass{Provisioner: "d", Parameters: map[string]string{reserved + "secret-name": secret, reserved + "secret-namespace": namespace}}
		step := NextVolumeStep(in)
		if show(NextVolumeStep(in)) != show(step) {
			t.Errorf("%s and then %s", show(step), show(NextVolumeStep(in)))
		}
		deletion, ok := step.(Delete)
		if !ok {
			return
		}
		ours := volume.Annotations[wellknown.AnnProvisionedBy] == "d" || !has(1) && driver == "d"
		if !in.Live || phase != "Released" || policy != "Delete" || !ours || deletion.Handle != handle || has(4) && !has(0) {
			t.Errorf("%s of a volume that may be needed: %v", show(step), volume)
		}
		if deletion.Secret != nil && (deletion.Secret.Name == "" || deletion.Secret.Namespace == "") {
			t.Errorf("half a secret: %v", deletion.Secret)
		}
	})
}
