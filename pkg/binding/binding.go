// SPDX-License-Identifier: Apache-2.0

// Package binding owns the question whether a VolumeSnapshot and a VolumeSnapshotContent belong together:
// a binding is two pointers, and counts only when both agree, UID included.
//
// It must not know what follows from the answer, nor read anything; it gets objects and gives a verdict.
//
// In the walks it stands before every step that could harm data: binding, restoring and deleting all ask
// here first, so that a snapshot can never reach a content that is bound to somebody else.
package binding

import (
	"fmt"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// State is what the two objects are to each other.
type State int

const (
	// Missing: there is no content.
	Missing State = iota
	// Unbound: the content waits for a snapshot of this name and may be given its UID.
	Unbound
	// Bound: both point at each other.
	Bound
	// Refused: the content is of the wrong sort, or somebody else's.
	Refused
)

// Verdict is the answer of Judge. Reason and Message are for the user, and empty unless something is wrong.
type Verdict struct {
	State   State
	Reason  string
	Message string
}

// Judge tells what content, the one that the snapshot names, is to it; content is nil when there is none.
func Judge(snapshot *snapv1.VolumeSnapshot, content *snapv1.VolumeSnapshotContent) Verdict {
	switch {
	case content == nil:
		return Verdict{Missing, wellknown.ReasonSnapshotContentMissing, "VolumeSnapshotContent is missing"}
	case IsPreProvisioned(snapshot):
		return judgeImported(snapshot, content)
	default:
		return judgeDynamic(snapshot, content)
	}
}

func judgeImported(snapshot *snapv1.VolumeSnapshot, content *snapv1.VolumeSnapshotContent) Verdict {
	ref := content.Spec.VolumeSnapshotRef
	switch {
	case content.Spec.Source.SnapshotHandle == nil:
		return Verdict{Refused, wellknown.ReasonSnapshotContentMismatch,
			"VolumeSnapshotContent is dynamically provisioned while expecting a pre-provisioned one"}
	case ref.Name != snapshot.Name || ref.Namespace != snapshot.Namespace:
		return misbound(content.Name)
	case ref.UID == "":
		return Verdict{State: Unbound}
	case ref.UID != snapshot.UID:
		// The usual cause is a retained content; without the name of the field people delete and lose it.
		v := misbound(content.Name)
		v.Message += fmt.Sprintf(": its spec.volumeSnapshotRef.uid is that of another snapshot of the same name; "+
			"to bind it here, clear that field of VolumeSnapshotContent %s", content.Name)
		return v
	default:
		return Verdict{State: Bound}
	}
}

func judgeDynamic(snapshot *snapv1.VolumeSnapshot, content *snapv1.VolumeSnapshotContent) Verdict {
	switch {
	case content.Spec.Source.VolumeHandle == nil:
		return Verdict{Refused, wellknown.ReasonSnapshotContentMismatch,
			fmt.Sprintf("VolumeSnapshotContent %s is pre-provisioned while expecting a dynamically provisioned one", content.Name)}
	case !PointsAt(content, snapshot):
		return misbound(content.Name)
	case content.Spec.Source.SnapshotHandle != nil:
		return Verdict{Refused, wellknown.ReasonSnapshotHandleSet,
			fmt.Sprintf("Snapshot handle should not be set in content %s/%s for dynamic provisioning", snapshot.Namespace, snapshot.Name)}
	default:
		return Verdict{State: Bound}
	}
}

func misbound(content string) Verdict {
	return Verdict{Refused, wellknown.ReasonSnapshotContentMisbound,
		fmt.Sprintf("VolumeSnapshotContent [%s] is bound to a different snapshot", content)}
}

// PointsAt tells that the content's reference is exactly this snapshot. An empty UID points at nobody.
func PointsAt(content *snapv1.VolumeSnapshotContent, snapshot *snapv1.VolumeSnapshot) bool {
	ref := content.Spec.VolumeSnapshotRef
	return ref.UID != "" && ref.UID == snapshot.UID && ref.Name == snapshot.Name && ref.Namespace == snapshot.Namespace
}

// IsNamedFor tells that the content bears the name of one that is made for the snapshot which it points at.
func IsNamedFor(content *snapv1.VolumeSnapshotContent) bool {
	uid := content.Spec.VolumeSnapshotRef.UID
	return uid != "" && content.Name == wellknown.ContentName(string(uid))
}

// Names tells that the snapshot names the content, in its spec or in its status.
func Names(snapshot *snapv1.VolumeSnapshot, content string) bool {
	if content == "" {
		return false
	}
	named := snapshot.Spec.Source.VolumeSnapshotContentName
	return named != nil && *named == content || BoundName(snapshot) == content
}

// CountsOn tells that the snapshot has its data in the content: its status says so, or the content is the one
// that was made for it. Merely naming a content in the spec gives no right to it.
func CountsOn(snapshot *snapv1.VolumeSnapshot, content string) bool {
	return BoundName(snapshot) == content || IsDynamic(snapshot) && wellknown.ContentName(string(snapshot.UID)) == content
}

// IsMutual tells that both pointers agree. It is what a consumer of the snapshot's data has to ask.
func IsMutual(snapshot *snapv1.VolumeSnapshot, content *snapv1.VolumeSnapshotContent) bool {
	return BoundName(snapshot) == content.Name && PointsAt(content, snapshot)
}

// BoundName is the content that the snapshot's status names, or empty.
func BoundName(snapshot *snapv1.VolumeSnapshot) string {
	if snapshot.Status == nil || snapshot.Status.BoundVolumeSnapshotContentName == nil {
		return ""
	}
	return *snapshot.Status.BoundVolumeSnapshotContentName
}

// ContentName is the content that belongs to the snapshot: the one that its spec names, or the one that is
// made for it. A status that names another one does not count, as it gives no right to that one; only a
// member of a group has no other way to know. Empty when there can be none.
func ContentName(snapshot *snapv1.VolumeSnapshot) string {
	if named := snapshot.Spec.Source.VolumeSnapshotContentName; named != nil {
		return *named
	}
	if IsMember(snapshot) {
		return BoundName(snapshot)
	}
	if IsDynamic(snapshot) {
		return wellknown.ContentName(string(snapshot.UID))
	}
	return ""
}

// IsDynamic tells that the snapshot is to be taken from a claim.
func IsDynamic(snapshot *snapv1.VolumeSnapshot) bool {
	return snapshot.Spec.Source.PersistentVolumeClaimName != nil
}

// IsPreProvisioned tells that the snapshot is to be bound to a content that somebody made by hand.
func IsPreProvisioned(snapshot *snapv1.VolumeSnapshot) bool {
	return snapshot.Spec.Source.VolumeSnapshotContentName != nil
}

// IsMember tells that the snapshot was made by a VolumeGroupSnapshot and goes with it.
func IsMember(snapshot *snapv1.VolumeSnapshot) bool {
	for _, owner := range snapshot.OwnerReferences {
		group, _, _ := strings.Cut(owner.APIVersion, "/")
		if owner.Kind == wellknown.KindVolumeGroupSnapshot && group == wellknown.GroupSnapshotGroup {
			return true
		}
	}
	return false
}
