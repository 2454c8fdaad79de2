// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

const ours = "Create: pvc-" + uid

type claimRow struct {
	name  string
	edits []func(*ClaimInput)
	want  string
}

func runClaims(t *testing.T, rows []claimRow) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			step := NextClaimStep(plain(row.edits...))
			if got := show(step); got != row.want {
				t.Errorf("got\n%s, want\n%s", got, row.want)
			}
			expectAdvice(t, step)
		})
	}
}

type edits = []func(*ClaimInput)

func lateBinding(in *ClaimInput) {
	in.Class.VolumeBindingMode = of(storagev1.VolumeBindingWaitForFirstConsumer)
}

func volumeNamed(name string, claim types.UID) func(*ClaimInput) {
	return func(in *ClaimInput) {
		in.Volume = &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "ns2", Name: "other", UID: claim}},
		}
	}
}

func bindTo(name string) func(*ClaimInput) {
	return func(in *ClaimInput) { in.Claim.Spec.VolumeName = name }
}

func TestClaimSelection(t *testing.T) {
	runClaims(t, []claimRow{
		{"T01 ours", nil, ours},
		{"T01 of another driver", edits{annotate(wellknown.AnnStorageProvisioner, "e")}, "Ignore: the claim is not for this driver"},
		{"T02 only the beta annotation", edits{onlyBeta("d")}, ours},
		{"T02 the new annotation wins", edits{annotate(wellknown.AnnStorageProvisioner, "e"), annotate(wellknown.AnnBetaStorageProvisioner, "d")}, "Ignore: the claim is not for this driver"},
		{"T02 even when it is empty", edits{annotate(wellknown.AnnStorageProvisioner, ""), annotate(wellknown.AnnBetaStorageProvisioner, "d")}, "Ignore: the claim is not for this driver"},
		{"T03 it has a volume", edits{bindTo("v")}, "Ignore: the claim has a volume"},
		{"T04 no annotation", edits{func(in *ClaimInput) { in.Claim.Annotations = nil }}, "Ignore: the claim is not for this driver"},
		{"T05 no class", edits{func(in *ClaimInput) { in.Class = nil }}, `silent Reject: storageClass "sc" not found`},
		{"T05 the beta class is named", edits{annotate(wellknown.AnnBetaStorageClass, ""), func(in *ClaimInput) { in.Class = nil }}, `silent Reject: storageClass "" not found`},
		{"T06 no node selected", edits{lateBinding}, "Ignore: the claim waits for its first consumer"},
		{"T06 empty node", edits{lateBinding, node("")}, "Ignore: the claim waits for its first consumer"},
		{"T06 node selected", edits{lateBinding, node("n1")}, ours},
		{"T06 the alpha key does not count here", edits{lateBinding, annotate(wellknown.AnnAlphaSelectedNode, "n1")}, "Ignore: the claim waits for its first consumer"},
		{"binding mode not set", edits{func(in *ClaimInput) { in.Class.VolumeBindingMode = nil }}, ours},
		{"T08 class of another driver", edits{func(in *ClaimInput) { in.Class.Provisioner = "e" }}, "Ignore: the class of the claim belongs to another driver"},
		{"T09 the volume exists", edits{volumeNamed("pvc-"+uid, uid)}, "AlreadyProvisioned"},
		{"T09 whatever it says, the name is ours", edits{volumeNamed("pvc-"+uid, "")}, "AlreadyProvisioned"},
		{"W23 the volume exists under a custom name", edits{volumeNamed("x-a1b2c", uid)}, "AlreadyProvisioned"},
		{"W7 a short name is taken by another claim", edits{volumeNamed("x-a1b2c", "other")},
			`Reject: the name x-a1b2c of the new volume is taken by a PersistentVolume of claim "ns2/other"; use a longer --volume-name-uuid-length`},
		{"T10 gone", edits{func(in *ClaimInput) { in.Claim = nil }}, "Ignore: the claim is gone"},
		{"W30 terminating", edits{func(in *ClaimInput) { in.Claim.DeletionTimestamp = gone }}, "Ignore: the claim is being deleted"},
		{"T16 empty selector", edits{func(in *ClaimInput) { in.Claim.Spec.Selector = &metav1.LabelSelector{} }}, "Reject: claim Selector is not supported"},
		{"a bound claim of a vanished class stays quiet", edits{bindTo("v"), func(in *ClaimInput) { in.Class = nil }}, "Ignore: the claim has a volume"},
	})
}

func onlyBeta(driver string) func(*ClaimInput) {
	return func(in *ClaimInput) {
		in.Claim.Annotations = map[string]string{wellknown.AnnBetaStorageProvisioner: driver}
	}
}

func TestClaimCapabilities(t *testing.T) {
	plugin := []capability.Plugin{csi.PluginCapability_Service_CONTROLLER_SERVICE}
	set := func(s capability.Set) func(*ClaimInput) { return func(in *ClaimInput) { in.Capabilities = s } }
	vac := func(in *ClaimInput) { in.Claim.Spec.VolumeAttributesClassName = of("gold") }
	runClaims(t, []claimRow{
		{"T28 no controller", edits{set(capability.Of(nil, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME))},
			"Reject: CSI driver does not support dynamic provisioning: plugin CONTROLLER_SERVICE capability is not reported"},
		{"T28 no CreateVolume", edits{set(capability.Of(plugin))},
			"Reject: CSI driver does not support dynamic provisioning: controller CREATE_DELETE_VOLUME capability is not reported"},
		{"T43 no snapshots", edits{fromSnapshot},
			"Reject: CSI driver does not support snapshot restore: controller CREATE_DELETE_SNAPSHOT capability is not reported"},
		{"T49 no clones", edits{fromClaim},
			"Reject: CSI driver does not support clone operations: controller CLONE_VOLUME capability is not reported"},
		{"T27 no modification", edits{vac},
			"Reject: CSI driver does not support VolumeAttributesClass: controller MODIFY_VOLUME capability is not reported"},
		{"T27 ignored when the feature is off", edits{vac, func(in *ClaimInput) { in.AttributesClass = false }}, ours},
		{"T27 an empty name is no class", edits{func(in *ClaimInput) { in.Claim.Spec.VolumeAttributesClassName = of("") }}, ours},
		{"order: capabilities before the selector", edits{set(capability.Of(plugin)), func(in *ClaimInput) { in.Claim.Spec.Selector = &metav1.LabelSelector{} }},
			"Reject: CSI driver does not support dynamic provisioning: controller CREATE_DELETE_VOLUME capability is not reported"},
	})
}

func TestRefusalHoldsForAWhile(t *testing.T) {
	refused := func(in *ClaimInput) {
		in.Refusal = &Refusal{Until: now.Add(time.Minute), Class: "sc-uid", Claim: in.Claim.DeepCopy()}
	}
	later := func(d time.Duration) func(*ClaimInput) { return func(in *ClaimInput) { in.Now = now.Add(d) } }
	runClaims(t, []claimRow{
		{"T63 it holds", edits{refused}, "Wait: 1m0s"},
		{"T63 for the time that is left", edits{refused, later(45 * time.Second)}, "Wait: 15s"},
		{"T63 it ends", edits{refused, later(time.Minute)}, ours},
		{"T63 the class was replaced", edits{refused, func(in *ClaimInput) { in.Class.UID = "new" }}, ours},
		{"W9 the claim was changed", edits{refused, func(in *ClaimInput) { in.Claim.Spec.Resources.Requests = nil }}, ours},
		{"W9 an annotation was changed", edits{refused, annotate("team", "blue")}, ours},
		{"the class is gone", edits{refused, func(in *ClaimInput) { in.Class = nil }}, "Wait: 1m0s"},
		{"a volume appeared", edits{refused, bindTo("v")}, "Ignore: the claim has a volume"},
	})
}

func TestAttemptsGoOn(t *testing.T) {
	attempt := created(t, plain())
	with := func(a *Attempt) func(*ClaimInput) { return func(in *ClaimInput) { in.Attempt = a } }
	open, made := attempt.asOpen(), attempt.asMade(&csi.Volume{VolumeId: "h"})
	undoing := func(more func(*Attempt)) *Attempt {
		next := *Undo{Attempt: open, Handle: "h", Err: errors.New("small")}.Begun().Attempt
		more(&next)
		return &next
	}
	parked, later := func(a *Attempt) { a.Parked = true }, func(a *Attempt) { a.NotBefore = now.Add(time.Second) }
	runClaims(t, []claimRow{
		{"T11 the claim is gone", edits{with(open), func(in *ClaimInput) { in.Claim, in.Class = nil, nil }}, "Resume: pvc-" + uid},
		{"T11 the claim is terminating", edits{with(open), func(in *ClaimInput) { in.Claim.DeletionTimestamp = gone }}, "Resume: pvc-" + uid},
		{"T12 a repeat that is not due", edits{with(attempt.asPrompted(now.Add(2 * time.Second)))}, "Wait: 2s"},
		{"T12 a repeat that is due", edits{with(attempt.asPrompted(now))}, "Resume: pvc-" + uid},
		{"T86 the node was changed", edits{with(open), node("n2")}, "Resume: pvc-" + uid},
		{"B005 the source is not looked at again", edits{with(open), fromSnapshot}, "Resume: pvc-" + uid},
		{"bound to something else meanwhile", edits{with(open), bindTo("v")}, "Resume: pvc-" + uid},
		{"T57 the volume is not written yet", edits{with(made)}, "Save: pvc-" + uid},
		{"the write had succeeded", edits{with(made), volumeNamed("pvc-"+uid, uid)}, "AlreadyProvisioned"},
		{"a namesake is not it", edits{with(made), volumeNamed("pvc-"+uid, "other")}, "Save: pvc-" + uid},
		{"T53 a removal goes on", edits{with(undoing(func(*Attempt) {}))}, "FinishUndo: pvc-" + uid},
		{"T53 before anything is asked for anew on another node", edits{with(undoing(parked)), node("n2")}, "FinishUndo: pvc-" + uid},
		{"T53 also when the claim is gone", edits{with(undoing(func(*Attempt) {})), func(in *ClaimInput) { in.Claim, in.Class = nil, nil }}, "FinishUndo: pvc-" + uid},
		{"T53 and also when the claim has a volume", edits{with(undoing(func(*Attempt) {})), volumeNamed("pvc-"+uid, uid)}, "FinishUndo: pvc-" + uid},
		{"T53 when it is due", edits{with(undoing(later))}, "Wait: 1s"},
		{"a refusal does not matter", edits{with(open), func(in *ClaimInput) {
			in.Refusal = &Refusal{Until: now.Add(time.Minute), Class: "sc-uid", Claim: in.Claim}
		}}, "Resume: pvc-" + uid},
	})
}

func TestVolumeNames(t *testing.T) {
	if got := VolumeNames(Options{NamePrefix: "x", NameLength: 5}, claimRef(plain().Claim)); len(got) != 2 || got[0] != "pvc-"+uid || got[1] != "x-a1b2c" {
		t.Error(got)
	}
	if got := VolumeNames(config().Options, claimRef(plain().Claim)); len(got) != 1 {
		t.Error(got)
	}
}
