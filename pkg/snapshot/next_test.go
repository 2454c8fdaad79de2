// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/protobuf/testing/protocmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

var (
	both = []string{wellknown.FinalizerSnapshotSource, wellknown.FinalizerSnapshotBound}
	// anyWhy leaves the words of Ignore and Wait to themselves.
	anyWhy = cmp.Options{cmpopts.IgnoreFields(Ignore{}, "Why"), cmpopts.IgnoreFields(Wait{}, "Why"), protocmp.Transform()}
)

type snapshotRow struct {
	name string
	in   SnapshotInput
	want SnapshotStep
}

func checkSnapshots(t *testing.T, rows []snapshotRow) {
	t.Helper()
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, NextSnapshotStep(c.in), anyWhy); diff != "" {
				t.Errorf("unexpected step (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewSnapshotIsProtectedStepByStep(t *testing.T) {
	checkSnapshots(t, []snapshotRow{
		{"S2 both finalizers at once", in(), Protect{Finalizers: both}},
		{"S3 Retain needs only one", in(func(i *SnapshotInput) { i.Class.DeletionPolicy = snapv1.VolumeSnapshotContentRetain }),
			Protect{Finalizers: both[:1]}},
		{"one left from an earlier life", in(func(i *SnapshotInput) { i.Snapshot.Finalizers = both[:1] }), Protect{Finalizers: both[1:]}},
		{"S9 default class and finalizers are one patch", in(noClass, func(i *SnapshotInput) {
			i.Classes = []*snapv1.VolumeSnapshotClass{defaultOf("d", driverName, "true"), defaultOf("o", "other", "true"),
				class("plain", driverName), defaultOf("T", driverName, "True")}
		}), Protect{Class: "d", Finalizers: both}},
		{"S9 the default class needs the volume", in(noClass, func(i *SnapshotInput) { i.VolumeRead, i.Volume, i.Options.Scope = false, nil, All }),
			FetchVolume{"pv1"}},
		{"the source comes after the snapshot", in(held, func(i *SnapshotInput) { i.Claim.Finalizers = nil }), ProtectSource{}},
		{"a claim that never got a volume, held by an earlier program, may go", in(held, func(i *SnapshotInput) {
			i.Claim.Status.Phase, i.Claim.Spec.VolumeName, i.Claim.DeletionTimestamp = "Pending", "", ptr(past)
		}), ReleaseSource{}},
		{"the volume is read before the claim is held", in(held, func(i *SnapshotInput) { i.Claim.Finalizers, i.VolumeRead, i.Volume = nil, false, nil }),
			FetchVolume{"pv1"}},
		{"the volume is read late", in(held, func(i *SnapshotInput) { i.VolumeRead, i.Volume = false, nil }), FetchVolume{"pv1"}},
		{"an old copy is refreshed before a content is made", in(held, func(i *SnapshotInput) { i.SnapshotLive = false }), FetchSnapshot{}},
		{"S36 takeover: content made without finalizer", in(taken, func(i *SnapshotInput) { i.Content.Finalizers = nil }), ProtectContent{}},
		{"S76 a content that is going gets no finalizer", in(ready, func(i *SnapshotInput) {
			i.Content.Finalizers, i.Content.DeletionTimestamp, i.Claim.Finalizers = nil, ptr(past), nil
		}), Ignore{}},
		{"W30 the source is protected again if it lost it", in(taken, func(i *SnapshotInput) { i.Claim.Finalizers = nil }), ProtectSource{}},
		{"S19 but not when it is going", in(taken, toldOf, func(i *SnapshotInput) {
			i.Claim.Finalizers, i.Claim.DeletionTimestamp = nil, ptr(past)
			i.Snapshot.Status = &snapv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr("snapcontent-u1"), ReadyToUse: ptr(false)}
		}), Ignore{}},
	})
}

// What users are told in more than one of these tests.
const (
	missing     = "VolumeSnapshotContent is missing | create VolumeSnapshotContent c, whose spec.volumeSnapshotRef is ns1/snap"
	lost        = "VolumeSnapshotContent is missing | VolumeSnapshotContent snapcontent-u1 is gone, and only it said where the data is: if the driver still has the snapshot, snapshotter import brings it back under another name"
	noSuchClass = `Failed to get snapshot class with error volumesnapshotclass.snapshot.storage.k8s.io "snapc" not found | create VolumeSnapshotClass snapc, or name another one in a new VolumeSnapshot`
)

func untouched(from string) string {
	return "No snapshotter of driver other, which " + from + " names, has touched this VolumeSnapshot for two minutes: it is not installed, not running, may not bind (its log and /readyz name the right), or the name of the driver is wrong" +
		" | see that the pods of driver other have a snapshotter beside the driver"
}

// A machine that leaves what is of another driver alone for good lets a slip in a class be silent for ever.
func TestWhoseSnapshotIsIt(t *testing.T) {
	young := func(age time.Duration) func(*SnapshotInput) {
		return func(i *SnapshotInput) { i.Snapshot.CreationTimestamp = metav1.NewTime(now.Add(-age)) }
	}
	other := func(i *SnapshotInput) { i.Class.Driver = "other" }
	checkSnapshots(t, []snapshotRow{
		{"S101 class of another driver", in(other, young(time.Second)), Wait{After: 119 * time.Second}},
		{"S101 class of another driver, whose snapshotter is at it", in(other, func(i *SnapshotInput) { i.Snapshot.Finalizers = both }), Ignore{}},
		{"S101 class of another driver, which has spoken", in(other, shown("x")), Ignore{}},
		{"S101 class of another driver, being deleted", in(other, func(i *SnapshotInput) { i.Snapshot.DeletionTimestamp = ptr(past) }), Ignore{}},
		{"S101 class of a driver that nobody serves: told, never written", in(other), tell(wellknown.ReasonSnapshotUnserved, untouched("VolumeSnapshotClass snapc")+
			"; if another driver is meant, correct the driver of VolumeSnapshotClass snapc, and the snapshot goes on by itself")},
		{"S101 class of a driver that nobody has served so far, corrected just now", in(other, func(i *SnapshotInput) { i.ClassSince = now.Add(-time.Second) }), Wait{After: 119 * time.Second}},
		{"S101 class of a driver that nobody has served so far, made just now", in(other, func(i *SnapshotInput) {
			i.Class.CreationTimestamp = metav1.NewTime(now.Add(-time.Second))
		}), Wait{After: 119 * time.Second}},
		{"S101 content of another driver goes before the class", in(taken, func(i *SnapshotInput) { i.Content.Spec.Driver = "other" }), Ignore{}},
		{"S101 content of a driver that nobody serves", in(imported, func(i *SnapshotInput) {
			i.Content.Spec.Driver, i.Snapshot.Finalizers, i.Snapshot.Status = "other", nil, nil
		}), tell(wellknown.ReasonSnapshotUnserved, untouched("VolumeSnapshotContent c"))},
		{"all: class of another driver", in(other, all), Protect{Finalizers: both}},
		{"S101 volume of another driver", in(noClass, func(i *SnapshotInput) { i.Volume.Spec.CSI.Driver = "other" }), tell(wellknown.ReasonSnapshotUnserved, untouched("the claim's PersistentVolume pv1"))},
		{"without class the volume must be read", in(noClass, func(i *SnapshotInput) { i.VolumeRead = false }), FetchVolume{"pv1"}},
		{"S8 own: a missing class is left to others at first", in(func(i *SnapshotInput) {
			i.Class, i.Snapshot.CreationTimestamp = nil, metav1.NewTime(now.Add(-time.Second))
		}), Wait{After: 4 * time.Second}},
		{"S8 own: then told, never written", in(func(i *SnapshotInput) { i.Class = nil }), tell(wellknown.ReasonGetSnapshotClassFailed, noSuchClass)},
		{"own: nobody speaks twice", in(func(i *SnapshotInput) { i.Class = nil }, shown("x")), Ignore{}},
		{"S18 own: volume that is not CSI", in(noClass, func(i *SnapshotInput) { i.Volume.Spec.CSI = nil }), tell(wellknown.ReasonSetDefaultSnapshotClassFailed,
			"Failed to set default snapshot class with error cannot find CSI PersistentVolumeSource for volume pv1 | only volumes of CSI drivers can be snapshotted: name a claim of such a volume in a new VolumeSnapshot")},
		{"S42 own: that the named content is missing is made sure of", in(imported, noContent), FetchContent{"c"}},
		{"own: named content is missing", in(imported, noContent, certain), tell(wellknown.ReasonSnapshotContentMissing, missing)},
		{"member of a group", in(func(i *SnapshotInput) {
			i.Snapshot.OwnerReferences = []metav1.OwnerReference{{APIVersion: "groupsnapshot.storage.k8s.io/v1", Kind: "VolumeGroupSnapshot"}}
		}), Ignore{}},
	})
}

func TestStatusFollowsContent(t *testing.T) {
	young := func(i *SnapshotInput) { i.Content.CreationTimestamp = metav1.NewTime(now.Add(-300 * time.Millisecond)) }
	bound := &snapv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr("snapcontent-u1"), ReadyToUse: ptr(false)}
	done := in(ready).Snapshot.Status
	checkSnapshots(t, []snapshotRow{
		{"a fast driver saves the early write", in(taken, young), Wait{After: 4700 * time.Millisecond}},
		{"a slow one is told of", in(taken), CopyStatus{bound, []Told{{false, wellknown.ReasonCreatingSnapshot,
			"Waiting for a snapshot ns1/snap to be created by the CSI driver."}}}},
		{"S1 ready at once is one event", in(ready, func(i *SnapshotInput) { i.Snapshot.Status = nil }), CopyStatus{done, []Told{{false,
			wellknown.ReasonSnapshotReady, "Snapshot ns1/snap is ready to use."}}}},
		{"S27 a wiped status is rebuilt, young or not", in(ready, young, func(i *SnapshotInput) { i.Snapshot.Status = nil }),
			CopyStatus{done, []Told{{false, wellknown.ReasonSnapshotReady, "Snapshot ns1/snap is ready to use."}}}},
		{"S2 ready: the source is let go", in(ready), ReleaseSource{}},
		{"S37 unless another needs it", in(ready, func(i *SnapshotInput) { i.ClaimInUse = true }), Ignore{}},
		{"S32 I6 settled", in(ready, func(i *SnapshotInput) { i.Claim.Finalizers = nil }), Ignore{}},
		{"S31 B049 a lost class means nothing to a ready one", in(ready, func(i *SnapshotInput) { i.Class, i.Claim = nil, nil }), Ignore{}},
		{"S33 lost content is looked for", in(ready, noContent), FetchContent{"snapcontent-u1"}},
		{"S33 and never made anew", in(ready, noContent, certain), rejected(in(ready), wellknown.ReasonSnapshotContentMissing, lost)},
		{"S33 not even when it was only cut", in(ready, noContent, certain, func(i *SnapshotInput) { i.Snapshot.Status.ReadyToUse = ptr(false) }),
			rejected(in(ready), wellknown.ReasonSnapshotContentMissing, lost)},
		{"S34 content that points elsewhere", in(ready, func(i *SnapshotInput) { i.Content.Spec.VolumeSnapshotRef.UID = "u2" }),
			rejected(in(ready), wellknown.ReasonSnapshotContentMisbound, "VolumeSnapshotContent [snapcontent-u1] is bound to a different snapshot | its spec.volumeSnapshotRef would have to be ns1/snap with UID \"u1\"")},
		{"B029 a source claim that vanished", in(taken, toldOf, func(i *SnapshotInput) { i.Claim = nil; i.Snapshot.Status = bound }), Ignore{}},
		{"a claim of a snapshot that was torn out", SnapshotInput{Claim: in(held).Claim}, ReleaseSource{}},
		{"a claim that others need", SnapshotInput{Claim: in(held).Claim, ClaimInUse: true}, Ignore{}},
		{"nothing is left", SnapshotInput{}, Ignore{}},
	})
}

func TestImportedSnapshot(t *testing.T) {
	withClass := func(i *SnapshotInput) {
		i.Snapshot.Spec.VolumeSnapshotClassName, i.Class = ptr("snapc"), class("snapc", driverName)
		i.Class.Parameters = map[string]string{wellknown.ParamSnapshotterSecretName: "s", wellknown.ParamSnapshotterSecretNamespace: "${volumesnapshot.namespace}"}
	}
	bound := func(i *SnapshotInput) {
		i.Content.Spec.VolumeSnapshotRef.UID, i.Content.Finalizers = "u1", []string{wellknown.FinalizerContent}
	}
	foreign := func(i *SnapshotInput) { i.Class.Driver = "other" }
	ofContent := func(i *SnapshotInput) {
		i.Content.Spec.VolumeSnapshotClassName, i.ContentClass = ptr("own"), class("own", driverName)
		i.ContentClass.Parameters = map[string]string{wellknown.ParamSnapshotterSecretName: "own", wellknown.ParamSnapshotterSecretNamespace: "ns2"}
	}
	unfit := rejected(in(), wellknown.ReasonSnapshotBindFailed, `Snapshot failed to bind VolumeSnapshotContent, VolumeSnapshotClass snapc is of driver "other", but VolumeSnapshotContent c is of driver "sim.csi.example"`+
		" | name a VolumeSnapshotClass of driver sim.csi.example, or none, in a new VolumeSnapshot")
	classless := rejected(in(), wellknown.ReasonGetSnapshotClassFailed, noSuchClass)
	classless.Status.ReadyToUse = nil
	checkSnapshots(t, []snapshotRow{
		{"S42 missing is made sure of", in(imported, noContent, all), FetchContent{"c"}},
		{"S42 missing", in(imported, noContent, all, certain), rejected(in(), wellknown.ReasonSnapshotContentMissing, missing)},
		{"S41 finalizers before the binding", in(imported, func(i *SnapshotInput) { i.Snapshot.Finalizers = nil }), Protect{Finalizers: both}},
		{"S41 bind", in(imported), Bind{}},
		{"S41 B051 bind with class, and the class's secret recorded", in(imported, withClass), Bind{Class: "snapc", Annotations: map[string]string{
			wellknown.AnnSnapshotDeletionSecretName: "s", wellknown.AnnSnapshotDeletionSecretNamespace: "ns1"}}},
		{"W8 a class of another driver", in(imported, withClass, foreign), unfit},
		{"W8 a class of another driver, beside one of the content", in(imported, ofContent, withClass, foreign), unfit},
		{"W8 what somebody has bound stays, and gets neither that class nor its secret", in(imported, bound, withClass, foreign, toldOf, func(i *SnapshotInput) {
			i.Snapshot.Status = &snapv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr("c"), ReadyToUse: ptr(false)}
		}), Ignore{}},
		{"B051 the secret is that of the content's class, not of the snapshot's", in(imported, ofContent, withClass), Bind{Annotations: map[string]string{
			wellknown.AnnSnapshotDeletionSecretName: "own", wellknown.AnnSnapshotDeletionSecretNamespace: "ns2"}}},
		{"B051 also of a snapshot that names no class", in(imported, ofContent), Bind{Annotations: map[string]string{
			wellknown.AnnSnapshotDeletionSecretName: "own", wellknown.AnnSnapshotDeletionSecretNamespace: "ns2"}}},
		{"B051 but not that of a class which another driver's has replaced", in(imported, ofContent, func(i *SnapshotInput) { i.ContentClass.Driver = "other" }), Bind{}},
		{"class filled in later", in(imported, bound, withClass, func(i *SnapshotInput) { i.Class.Parameters = nil }), Bind{Class: "snapc"}},
		{"W18 an old mark goes", in(imported, bound, func(i *SnapshotInput) {
			i.Content.Annotations = map[string]string{wellknown.AnnBeingDeleted: "yes"}
		}), Bind{Unmark: true}},
		{"W18 but not from a content that is going", in(imported, bound, toldOf, func(i *SnapshotInput) {
			i.Content.Annotations, i.Content.DeletionTimestamp = map[string]string{wellknown.AnnBeingDeleted: "yes"}, ptr(past)
			i.Snapshot.Status = &snapv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr("c"), ReadyToUse: ptr(false)}
		}), Ignore{}},
		{"a content that is going is not bound", in(imported, func(i *SnapshotInput) { i.Content.DeletionTimestamp = ptr(past) }),
			rejected(in(), wellknown.ReasonSnapshotBindFailed, "Snapshot failed to bind VolumeSnapshotContent, c is being deleted | name another content in a new VolumeSnapshot")},
		{"S44 B007 somebody else's", in(imported, func(i *SnapshotInput) { i.Content.Spec.VolumeSnapshotRef.Name, i.Snapshot.Finalizers = "victim", nil }),
			rejected(in(), wellknown.ReasonSnapshotContentMisbound, "VolumeSnapshotContent [c] is bound to a different snapshot | its spec.volumeSnapshotRef would have to be ns1/snap with UID \"u1\"")},
		{"class does not exist", in(imported, withClass, func(i *SnapshotInput) { i.Class = nil }), classless},
		{"names nothing", in(imported, noContent, all, func(i *SnapshotInput) { i.Snapshot.Spec.Source.VolumeSnapshotContentName = ptr("") }), Ignore{}},
		{"S35 no source", in(func(i *SnapshotInput) { i.Snapshot.Spec.Source = snapv1.VolumeSnapshotSource{} }), rejected(in(),
			wellknown.ReasonSnapshotValidationError, "Exactly one of PersistentVolumeClaimName and VolumeSnapshotContentName should be specified | say one of them in a new VolumeSnapshot")},
		{"S35 two sources", in(func(i *SnapshotInput) { i.Snapshot.Spec.Source.VolumeSnapshotContentName = ptr("c") }), rejected(in(),
			wellknown.ReasonSnapshotValidationError, "Exactly one of PersistentVolumeClaimName and VolumeSnapshotContentName should be specified | say one of them in a new VolumeSnapshot")},
	})
}
