// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

const driverName = "sim.csi.example"

var (
	now  = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	past = metav1.NewTime(now.Add(-time.Hour))
)

func ptr[T any](v T) *T { return &v }

// in is a snapshot of a bound claim, a minute old, everything in place but no step done; edits change it.
func in(edits ...func(*SnapshotInput)) SnapshotInput {
	i := SnapshotInput{
		Snapshot: &snapv1.VolumeSnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns1", Name: "snap", UID: "u1", ResourceVersion: "7", CreationTimestamp: past},
			Spec: snapv1.VolumeSnapshotSpec{
				Source:                  snapv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr("data")},
				VolumeSnapshotClassName: ptr("snapc"),
			},
		},
		SnapshotLive: true,
		Class:        class("snapc", driverName),
		Claim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns1", Name: "data", UID: "c1"},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv1"},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		},
		Volume: &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv1"},
			Spec: corev1.PersistentVolumeSpec{
				ClaimRef: &corev1.ObjectReference{Namespace: "ns1", Name: "data", UID: "c1"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					CSI: &corev1.CSIPersistentVolumeSource{Driver: driverName, VolumeHandle: "vol-1"}},
			},
		},
		VolumeRead: true,
		Now:        now,
		Options:    SnapshotOptions{Driver: driverName, PreventVolumeModeConversion: true},
	}
	for _, edit := range edits {
		edit(&i)
	}
	return i
}

func class(name, driver string) *snapv1.VolumeSnapshotClass {
	return &snapv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Driver: driver, DeletionPolicy: snapv1.VolumeSnapshotContentDelete,
	}
}

func defaultOf(name, driver, value string) *snapv1.VolumeSnapshotClass {
	c := class(name, driver)
	c.Annotations = map[string]string{wellknown.AnnIsDefaultSnapshotClass: value}
	return c
}

// held: the snapshot carries our finalizers, the claim its own.
func held(i *SnapshotInput) {
	i.Snapshot.Finalizers = []string{wellknown.FinalizerSnapshotSource, wellknown.FinalizerSnapshotBound}
	if i.Claim != nil {
		i.Claim.Finalizers = []string{wellknown.FinalizerSourceClaim}
	}
}

// taken: the content exists, as we make it.
func taken(i *SnapshotInput) {
	held(i)
	i.Content = &snapv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: "snapcontent-u1", CreationTimestamp: past, Finalizers: []string{wellknown.FinalizerContent}},
		Spec: snapv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{Namespace: "ns1", Name: "snap", UID: "u1"},
			DeletionPolicy:    snapv1.VolumeSnapshotContentDelete, Driver: driverName,
			Source: snapv1.VolumeSnapshotContentSource{VolumeHandle: ptr("vol-1")},
		},
	}
}

// ready: both statuses say that it is ready, and agree.
func ready(i *SnapshotInput) {
	if i.Content == nil {
		taken(i)
	}
	i.Content.Status = &snapv1.VolumeSnapshotContentStatus{
		SnapshotHandle: ptr("s-1"), ReadyToUse: ptr(true), CreationTime: ptr(past.UnixNano()), RestoreSize: ptr(int64(1 << 30)),
	}
	readyStatus(i)
}

func readyStatus(i *SnapshotInput) {
	i.Snapshot.Status = &snapv1.VolumeSnapshotStatus{
		BoundVolumeSnapshotContentName: ptr("snapcontent-u1"), ReadyToUse: ptr(true), CreationTime: ptr(past),
		RestoreSize: resource.NewQuantity(1<<30, resource.BinarySI),
	}
}

// imported: the snapshot names a content made by hand.
func imported(i *SnapshotInput) {
	taken(i)
	i.Snapshot.Spec = snapv1.VolumeSnapshotSpec{Source: snapv1.VolumeSnapshotSource{VolumeSnapshotContentName: ptr("c")}}
	i.Content.Name = "c"
	i.Content.Spec.Source = snapv1.VolumeSnapshotContentSource{SnapshotHandle: ptr("s-1")}
	i.Content.Finalizers, i.Content.Spec.VolumeSnapshotRef.UID = nil, ""
	i.Claim, i.Class, i.Volume = nil, nil, nil
}

func deleted(i *SnapshotInput)   { i.Snapshot.DeletionTimestamp = ptr(past) }
func noContent(i *SnapshotInput) { i.Content = nil }
func certain(i *SnapshotInput)   { i.ContentLive = true }
func all(i *SnapshotInput)       { i.Options.Scope, i.Options.Driver = All, "" }
func noClass(i *SnapshotInput)   { i.Snapshot.Spec.VolumeSnapshotClassName, i.Class = nil, nil }

func shown(message string) func(*SnapshotInput) {
	return func(i *SnapshotInput) {
		i.Snapshot.Status = &snapv1.VolumeSnapshotStatus{
			ReadyToUse: ptr(false), Error: &snapv1.VolumeSnapshotError{Time: ptr(past), Message: &message}}
	}
}

// helps stands in texts of tests between what users have always been told and what would help.
const helps = " | "

// split gives a text as users see it, and what of it is advice.
func split(text string) (message, advice string) {
	pinned, advice, _ := strings.Cut(text, helps)
	return told(pinned, advice), advice
}

func tell(reason, text string) Tell {
	message, advice := split(text)
	return Tell{Told{true, reason, message}, advice}
}

func rejected(i SnapshotInput, reason, text string) Reject {
	message, advice := split(text)
	at, unready := metav1.NewTime(now), false
	status := i.Snapshot.Status.DeepCopy()
	if status == nil {
		status = &snapv1.VolumeSnapshotStatus{}
	}
	status.Error, status.ReadyToUse = &snapv1.VolumeSnapshotError{Time: &at, Message: &message}, &unready
	return Reject{Reason: reason, Message: message, Advice: advice, Status: status}
}

// con is a content that our binder has just made; edits change it.
func con(edits ...func(*ContentInput)) ContentInput {
	snapshot := in(taken)
	i := ContentInput{
		Content: snapshot.Content, Snapshot: Alive, Now: now, Capabilities: capability.Of(nil),
		Options: ContentOptions{Driver: driverName, NamePrefix: "snapshot", NameLength: wellknown.FullUID,
			RetryStart: time.Second, RetryMax: 5 * time.Minute},
	}
	i.Content.Spec.VolumeSnapshotClassName = ptr("snapc")
	i.Content.Annotations = map[string]string{wellknown.AnnBeingCreated: "yes", wellknown.AnnSnapshotParameters: `{"tier":"gold"}`}
	for _, edit := range edits {
		edit(&i)
	}
	return i
}

func terminating(i *ContentInput) {
	i.Content.DeletionTimestamp = ptr(past)
	i.Snapshot = Deleting
}

func byHand(i *ContentInput) {
	i.Content.Spec.Source = snapv1.VolumeSnapshotContentSource{SnapshotHandle: ptr("s-1")}
	i.Content.Annotations, i.Content.Spec.VolumeSnapshotClassName = nil, nil
}

func cut(i *ContentInput) {
	delete(i.Content.Annotations, wellknown.AnnBeingCreated)
	i.Content.Status = &snapv1.VolumeSnapshotContentStatus{
		SnapshotHandle: ptr("s-1"), ReadyToUse: ptr(false), CreationTime: ptr(past.UnixNano())}
}

func finished(i *ContentInput) {
	cut(i)
	i.Content.Status.ReadyToUse = ptr(true)
}

func unmarked(i *ContentInput) { delete(i.Content.Annotations, wellknown.AnnBeingCreated) }
func unrecorded(i *ContentInput) {
	delete(i.Content.Annotations, wellknown.AnnSnapshotParameters)
	i.Class = class("snapc", driverName)
	i.Class.Parameters = map[string]string{"tier": "gold"}
}
func live(i *ContentInput)     { i.Live = true }
func retain(i *ContentInput)   { i.Content.Spec.DeletionPolicy = snapv1.VolumeSnapshotContentRetain }
func doomed(i *ContentInput)   { i.Content.Annotations[wellknown.AnnBeingDeleted] = "yes" }
func waiting(i *ContentInput)  { i.Attempt.NotBefore = now.Add(4 * time.Second) }
func neverUID(i *ContentInput) { i.Content.Spec.VolumeSnapshotRef.UID = types.UID("") }

func can(what ...capability.Controller) func(*ContentInput) {
	return func(i *ContentInput) { i.Capabilities = capability.Of(nil, what...) }
}

func tried(t Tried) func(*ContentInput) { return func(i *ContentInput) { i.Attempt.Tried = t } }
func seen(s SnapshotState) func(*ContentInput) {
	return func(i *ContentInput) { i.Snapshot = s }
}

var (
	get  = csi.ControllerServiceCapability_RPC_GET_SNAPSHOT
	list = csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS
)

func request() *csi.CreateSnapshotRequest {
	return &csi.CreateSnapshotRequest{SourceVolumeId: "vol-1", Name: "snapshot-u1", Parameters: map[string]string{"tier": "gold"}}
}
