// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

func withParameters(pairs ...string) func(*SnapshotInput) {
	return func(i *SnapshotInput) {
		i.Class.Parameters = map[string]string{}
		for n := 0; n < len(pairs); n += 2 {
			i.Class.Parameters[pairs[n]] = pairs[n+1]
		}
	}
}

func TestContentIsWrittenWhole(t *testing.T) {
	want := func(edits ...func(*snapv1.VolumeSnapshotContent)) *snapv1.VolumeSnapshotContent {
		c := &snapv1.VolumeSnapshotContent{
			ObjectMeta: metav1.ObjectMeta{
				Name: "snapcontent-u1", Finalizers: []string{wellknown.FinalizerContent},
				Annotations: map[string]string{wellknown.AnnBeingCreated: "yes", wellknown.AnnSnapshotParameters: "{}", wellknown.AnnMadeAt: "2026-08-01T12:00:00Z"},
			},
			Spec: snapv1.VolumeSnapshotContentSpec{
				VolumeSnapshotRef: corev1.ObjectReference{Kind: "VolumeSnapshot", APIVersion: "snapshot.storage.k8s.io/v1",
					Namespace: "ns1", Name: "snap", UID: "u1", ResourceVersion: "7"},
				DeletionPolicy: snapv1.VolumeSnapshotContentDelete, Driver: driverName, VolumeSnapshotClassName: ptr("snapc"),
				Source: snapv1.VolumeSnapshotContentSource{VolumeHandle: ptr("vol-1")},
			},
		}
		for _, edit := range edits {
			edit(c)
		}
		return c
	}
	block := func(i *SnapshotInput) { i.Volume.Spec.VolumeMode = ptr(corev1.PersistentVolumeBlock) }
	for _, c := range []struct {
		name string
		in   SnapshotInput
		want *snapv1.VolumeSnapshotContent
	}{
		{"S1 all fields of a dynamic content, its mark and its finalizer", in(held), want()},
		{"S21 volume mode", in(held, block), want(func(c *snapv1.VolumeSnapshotContent) {
			c.Spec.SourceVolumeMode = ptr(corev1.PersistentVolumeBlock)
		})},
		{"S21 flag off", in(held, block, func(i *SnapshotInput) { i.Options.PreventVolumeModeConversion = false }), want()},
		{"S97 node", in(held, func(i *SnapshotInput) { i.Node = "n1" }), want(func(c *snapv1.VolumeSnapshotContent) {
			c.Labels = map[string]string{wellknown.LabelManagedBy: "n1"}
		})},
		{"S53 reserved keys are not recorded, others are", in(held, withParameters(wellknown.ParamSnapshotterListSecretName, "x", "tier", "gold")),
			want(func(c *snapv1.VolumeSnapshotContent) {
				c.Annotations[wellknown.AnnSnapshotParameters] = `{"tier":"gold"}`
			})},
		{"S4 secret from templates", in(held, withParameters(wellknown.ParamSnapshotterSecretName, "s-${volumesnapshot.name}",
			wellknown.ParamSnapshotterSecretNamespace, "${volumesnapshot.namespace}")),
			want(func(c *snapv1.VolumeSnapshotContent) {
				c.Annotations[wellknown.AnnSnapshotDeletionSecretName] = "s-snap"
				c.Annotations[wellknown.AnnSnapshotDeletionSecretNamespace] = "ns1"
			})},
		{"all: the sidecar of another driver marks for itself", in(held, all), want(func(c *snapv1.VolumeSnapshotContent) {
			c.Annotations = map[string]string{wellknown.AnnMadeAt: "2026-08-01T12:00:00Z"}
		})},
		{"S19 a claim that is going, protected before", in(held, func(i *SnapshotInput) { i.Claim.DeletionTimestamp = ptr(past) }), want()},
		{"the name at the driver is recorded with the parameters", in(held, func(i *SnapshotInput) { i.Options.NamePrefix, i.Options.NameLength = "s", 8 }),
			want(func(c *snapv1.VolumeSnapshotContent) { c.Annotations[wellknown.AnnSnapshotName] = "s-u1" })},
		{"all: and not for the sidecar of another driver", in(held, all, func(i *SnapshotInput) { i.Options.NamePrefix = "s" }), want(func(c *snapv1.VolumeSnapshotContent) {
			c.Annotations = map[string]string{wellknown.AnnMadeAt: "2026-08-01T12:00:00Z"}
		})},
		{"S28 an old error is no obstacle", in(shown("x"), held), want()},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(SnapshotStep(CreateContent{c.want}), NextSnapshotStep(c.in)); diff != "" {
				t.Errorf("unexpected step (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatStandsInTheWayOfAContent(t *testing.T) {
	const failed = "Failed to create snapshot content with error "
	const input = failed + `failed to get input parameters to create snapshot snap: `
	const name, namespace = wellknown.ParamSnapshotterSecretName, wellknown.ParamSnapshotterSecretNamespace
	const misclaimed = `"claim in dataSource not bound or invalid" | PersistentVolume pv1 does not name claim ns1/data in its spec.claimRef: ` +
		`correct that, or name another claim in a new VolumeSnapshot`
	const tokens = ` | look at parameter csi.storage.k8s.io/snapshotter-secret-name of VolumeSnapshotClass snapc, which may hold these and no other tokens: ` +
		`${volumesnapshot.name}, ${volumesnapshot.namespace}, ${volumesnapshotcontent.name}; it is looked at again by itself`
	for _, c := range []struct {
		name    string
		in      SnapshotInput
		message string
	}{
		{"S14 no claim", in(held, func(i *SnapshotInput) { i.Claim = nil }),
			failed + "snapshot controller failed to update snap on API server: cannot get claim from snapshot | there is no claim data in namespace ns1: create it, or name another one in a new VolumeSnapshot"},
		{"S19 B029 claim is going", in(held, func(i *SnapshotInput) { i.Claim.Finalizers, i.Claim.DeletionTimestamp = nil, ptr(past) }),
			failed + "snapshot controller failed to update data on API server: cannot add finalizer on claim because it is being deleted | claim ns1/data is going, and no new snapshot of it is begun: name another one in a new VolumeSnapshot"},
		// A content without the mark of a node would be worked on by nobody, and nobody would say so.
		{"S97 no node reaches the volume", in(held, func(i *SnapshotInput) { i.NodeErr = errors.New("no node") }), failed + "no node"},
		{"S15 claim not bound", in(held, func(i *SnapshotInput) { i.Claim.Status.Phase = corev1.ClaimPending }),
			input + `"the PVC data is not yet bound to a PV, will not attempt to take a snapshot" | see why the claim is not bound: provisioner explain -n ns1 data; it is looked at again by itself`},
		{"S15 and is not held before it is", in(held, func(i *SnapshotInput) { i.Claim.Status.Phase, i.Claim.Finalizers = corev1.ClaimPending, nil }),
			input + `"the PVC data is not yet bound to a PV, will not attempt to take a snapshot" | see why the claim is not bound: provisioner explain -n ns1 data; it is looked at again by itself`},
		{"S15 claim that has lost its volume, which does not come by itself", in(held, func(i *SnapshotInput) { i.Claim.Status.Phase = corev1.ClaimLost }),
			input + `"the PVC data is not yet bound to a PV, will not attempt to take a snapshot" | see why the claim is not bound: provisioner explain -n ns1 data; it is looked at again by itself`},
		{"S16 no volume", in(held, func(i *SnapshotInput) { i.Volume = nil }),
			input + `"failed to retrieve PV pv1 from the API server: \"persistentvolumes \\\"pv1\\\" not found\"" | claim ns1/data names a PersistentVolume that does not exist, so that there is nothing to take a snapshot of: name another claim in a new VolumeSnapshot`},
		{"S17 volume of another claim", in(held, func(i *SnapshotInput) { i.Volume.Spec.ClaimRef.UID = "c0" }), input + misclaimed},
		{"S17 volume of nobody", in(held, func(i *SnapshotInput) { i.Volume.Spec.ClaimRef = nil }), input + misclaimed},
		{"S18 B077 not a CSI volume", in(held, func(i *SnapshotInput) { i.Volume.Spec.CSI = nil }),
			failed + "cannot find CSI PersistentVolumeSource for volume pv1 | only volumes of CSI drivers can be snapshotted: name a claim of such a volume in a new VolumeSnapshot"},
		{"S20 W8 volume of another driver", in(held, func(i *SnapshotInput) { i.Volume.Spec.CSI.Driver = "other" }),
			failed + `volume pv1 is of driver "other", but VolumeSnapshotClass snapc is of driver "sim.csi.example" | name a VolumeSnapshotClass of driver other in a new VolumeSnapshot`},
		{"S5 half a secret", in(held, withParameters(name, "s")), input + `"failed to get name and namespace template from params: ` +
			`either name and namespace for Snapshotter secrets specified, Both must be specified" | look at parameters csi.storage.k8s.io/snapshotter-secret-name and ` +
			`csi.storage.k8s.io/snapshotter-secret-namespace of VolumeSnapshotClass snapc, which have to be there both, or none; it is looked at again by itself`},
		{"S6 unknown token", in(held, withParameters(name, "${volumesnapshot.annotations['x']}", namespace, "n")),
			input + `"error resolving value \"${volumesnapshot.annotations['x']}\": invalid tokens: [\"volumesnapshot.annotations['x']\"]"` + tokens},
		{"S7 not a name", in(held, withParameters(name, "A b", namespace, "n")), input + `"\"A b\" is not a valid secret name"` + tokens},
		{"S53 W3 unknown reserved key", in(held, withParameters("csi.storage.k8s.io/typo", "x")), input + `"failed to remove CSI Parameters of prefixed keys: ` +
			`found unknown parameter key \"csi.storage.k8s.io/typo\" with reserved namespace csi.storage.k8s.io/" | look at the parameters of VolumeSnapshotClass snapc; it is looked at again by itself`},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := rejected(c.in, wellknown.ReasonSnapshotContentCreationFailed, c.message)
			want.Waiting = c.in.Claim != nil && c.in.Claim.Status.Phase == corev1.ClaimPending
			if diff := cmp.Diff(SnapshotStep(want), NextSnapshotStep(c.in)); diff != "" {
				t.Errorf("unexpected step (-want +got):\n%s", diff)
			}
			shown(want.Message)(&c.in)
			known := Reject{Reason: want.Reason, Message: want.Message, Advice: want.Advice, Waiting: want.Waiting}
			if diff := cmp.Diff(SnapshotStep(known), NextSnapshotStep(c.in)); diff != "" {
				t.Errorf("an error that is shown already (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultClassErrors(t *testing.T) {
	const failed = "Failed to set default snapshot class with error "
	const none = " | claim ns1/data is of driver sim.csi.example: annotate a VolumeSnapshotClass of that driver with snapshot.storage.kubernetes.io/is-default-class=true, or name a class in a new VolumeSnapshot"
	defaults := func(classes ...*snapv1.VolumeSnapshotClass) func(*SnapshotInput) {
		return func(i *SnapshotInput) { i.Classes = classes }
	}
	for _, c := range []struct {
		name    string
		in      SnapshotInput
		message string
	}{
		{"S10 defaults of others", in(noClass, defaults(defaultOf("a", "x", "true"), defaultOf("b", "y", "true"))), "cannot find default snapshot class" + none},
		{"S12 other spellings", in(noClass, defaults(defaultOf("a", driverName, "True"), defaultOf("b", driverName, "false"))), "cannot find default snapshot class" + none},
		{"S11 B075 two", in(noClass, defaults(defaultOf("b", driverName, "true"), defaultOf("a", driverName, "true"))),
			"2 default snapshot classes were found: a, b | they are all of driver sim.csi.example: leave annotation snapshot.storage.kubernetes.io/is-default-class on one of them, or name a class in a new VolumeSnapshot"},
		{"no volume yet", in(noClass, all, func(i *SnapshotInput) { i.Claim.Status.Phase = corev1.ClaimPending }),
			"the PVC data is not yet bound to a PV, will not attempt to take a snapshot | see why the claim is not bound: provisioner explain -n ns1 data; it is looked at again by itself"},
		{"no claim", in(noClass, all, func(i *SnapshotInput) { i.Claim = nil }), "cannot get claim from snapshot | there is no claim data in namespace ns1: create it, or name another one in a new VolumeSnapshot"},
		{"volume of another claim", in(noClass, func(i *SnapshotInput) { i.Volume.Spec.ClaimRef.Name = "x" }),
			"claim in dataSource not bound or invalid | PersistentVolume pv1 does not name claim ns1/data in its spec.claimRef: correct that, or name another claim in a new VolumeSnapshot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			message, advice := split(failed + c.message)
			waits := c.in.Claim != nil && c.in.Claim.Status.Phase == corev1.ClaimPending
			want := Reject{Reason: wellknown.ReasonSetDefaultSnapshotClassFailed, Message: message, Advice: advice, Waiting: waits, Status: &snapv1.VolumeSnapshotStatus{
				Error: &snapv1.VolumeSnapshotError{Time: ptr(metav1.NewTime(now)), Message: &message}}}
			if diff := cmp.Diff(SnapshotStep(want), NextSnapshotStep(c.in)); diff != "" {
				t.Errorf("unexpected step (-want +got):\n%s", diff)
			}
		})
	}
}
