// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/capability"
)

// ContentOptions are what the program was told about taking snapshots.
type ContentOptions struct {
	Driver string
	// NamePrefix and NameLength make the name that the driver sees; see wellknown.Name.
	NamePrefix string
	NameLength int
	// ExtraMetadata adds the names of the objects to the driver's parameters.
	ExtraMetadata bool
	// RetryStart and RetryMax bound the delays between failing calls.
	RetryStart, RetryMax time.Duration
}

// SnapshotState is what is known of the snapshot that a content refers to. For a content that was never
// bound it is about a snapshot of the right name that names the content.
type SnapshotState int

const (
	// Unknown: nobody could tell.
	Unknown SnapshotState = iota
	// Alive: it exists, and nobody deletes it, or somebody still reads its data. What is read live may be newer.
	Alive
	// Deleting: it is being deleted, which nothing can take back, and nobody can begin to read it any more.
	Deleting
	// Gone: it does not exist, or another one has its name. Certain only when read live.
	Gone
)

// StateOf tells what a snapshot of the name that the content refers to means for the content; snapshot is
// nil when there is none.
func StateOf(content *snapv1.VolumeSnapshotContent, snapshot *snapv1.VolumeSnapshot) SnapshotState {
	uid := content.Spec.VolumeSnapshotRef.UID
	switch {
	case snapshot == nil:
		return Gone
	case uid != "" && snapshot.UID != uid, uid == "" && !binding.Names(snapshot, content.Name):
		// The reference can be edited; what a living snapshot counts on is not for the taking.
		if snapshot.DeletionTimestamp == nil && binding.CountsOn(snapshot, content.Name) {
			return Alive
		}
		return Gone
	case snapshot.DeletionTimestamp != nil && !IsRead(snapshot):
		return Deleting
	default:
		return Alive
	}
}

// Tried is what the calls of this process have shown about the creation of a snapshot.
type Tried int

const (
	// NotTried: this process has sent no create.
	NotTried Tried = iota
	// Open: the last create may have taken effect, or may still be running.
	Open
	// Settled: the driver has said what became of it.
	Settled
)

// Attempt is the memory that a process has of its work on one content. It is lost with the process; the
// content's own fields then say what may have happened.
type Attempt struct {
	Tried Tried
	// Fresh says that the content was made while this process had the lead, so that nobody else can have
	// sent a create for it.
	Fresh bool
	// Leaving says that the machine has seen the deletion.
	Leaving bool
	// LeavingSince is when it saw it first.
	LeavingSince time.Time
	// Unsure counts the answers in a row, since the deletion, that leave the outcome open without any hint
	// that the call is still running.
	Unsure int
	// UnsureSince is when the first of them came, UnsureFor how much later the last one.
	UnsureSince time.Time
	UnsureFor   time.Duration
	// Failures counts failed calls in a row, Polls those that found the snapshot not ready.
	Failures, Polls int
	// NotBefore is the earliest time of the next call.
	NotBefore time.Time
	// SecretMissing is since when a secret that is needed for leaving certainly does not exist.
	SecretMissing time.Time
	// Deleted says that the driver has confirmed the deletion.
	Deleted bool
	// Listed says that the driver's list has shown the snapshot, and Lost that it is not to be asked for by its name.
	Listed, Lost bool
	// Given says that this process was the one that got the handle on record, and Asked that it has asked the driver by the name since.
	Given, Asked bool
	// Seen says that the driver has shown the snapshot under its handle, and was not asked by the name after that.
	Seen bool
	// Undated says that the driver has told of the snapshot without a time, so that the one on record may be ours, and Suspect what
	// it has answered last for another snapshot.
	Undated bool
	Suspect Answer
	// Refused says that the driver has refused the create for certain, so that nothing is there under the name that was asked for.
	Refused bool
	// Checked says that the driver, asked by the name since the deletion, has shown that nothing is in the place of the snapshot.
	Checked bool
	// Replacement is a snapshot that has to go: with Lost, one that the driver has certainly taken in place of the one on record; else what it
	// has answered to the name of a content that goes with its data.
	Replacement string
}

// ContentInput is all that a decision about a VolumeSnapshotContent may depend on.
type ContentInput struct {
	Content *snapv1.VolumeSnapshotContent
	// GroupHandle is the handle of the group that the snapshot is a member of, empty for ordinary ones.
	GroupHandle string
	// Class is the one that the content names, nil when it does not exist.
	Class *snapv1.VolumeSnapshotClass
	// Snapshot is the state of the snapshot that the content refers to.
	Snapshot SnapshotState
	// Taken is since when the snapshot says that it was taken, nil when it does not, or nobody could tell.
	Taken *metav1.Time
	// Late says that the content is much younger than the cached snapshot, or that the cache has none.
	Late bool
	// Live says that Content and Snapshot were read from the API server just now.
	Live bool
	// SharedWith names another content that keeps the same snapshot at the driver; looked for with Live.
	SharedWith string
	// Unlisted says that the driver's list has just been empty when it was asked for the snapshot.
	Unlisted bool

	Attempt      Attempt
	Capabilities capability.Set
	Now          time.Time
	Options      ContentOptions
}

// ContentStep is what should happen next to a VolumeSnapshotContent. The set is closed. Ignore and Wait end
// a round; after the others the machine is asked again.
//
//sumtype:decl
type ContentStep interface{ contentStep() }

type (
	// Mark puts the being-created mark back on a content that lost it while a create is open.
	Mark struct{}

	// Create asks the driver to take the snapshot, again if need be. The secret is read first and the mark
	// written next, so that neither a missing secret nor a bad class leaves a mark behind.
	Create struct {
		Request *csi.CreateSnapshotRequest
		Secret  *corev1.SecretReference
		// WithoutSecret allows the call when the secret does not exist any more.
		WithoutSecret bool
		// Mark is set when the mark is missing, or the name on record is another; Parameters when the record of the parameters is missing.
		Mark       bool
		Parameters string
	}

	// Poll asks the driver whether the snapshot is ready, by the first of the ways that gives an answer.
	Poll struct {
		Handle    string
		Get, List bool
		Secret    *corev1.SecretReference
		// Again is the create to repeat when no other way gives an answer; nil for imported contents.
		Again *Create
		// EvenLost repeats it also when the driver certainly does not know the handle.
		EvenLost bool
	}

	// Record writes a status and tells users; both may be missing when they know already. Failure is set when
	// it is an error of the objects, found before any call.
	Record struct {
		Status  *snapv1.VolumeSnapshotContentStatus
		Told    *Told
		Failure string
		// Advice ends the failure's message, where somebody knows what would help.
		Advice string
	}

	// DropMark removes the being-created mark.
	DropMark struct{}

	// Confirm reads the content, and the snapshot unless its deletion is certain, live.
	Confirm struct{}

	// Delete asks the driver to delete the snapshot.
	Delete struct {
		Handle        string
		Secret        *corev1.SecretReference
		WithoutSecret bool
	}

	// Remove asks the driver to delete a snapshot that it has taken in place of the content's, unless a content has it.
	Remove struct {
		Handle        string
		Secret        *corev1.SecretReference
		WithoutSecret bool
	}

	// ClearStatus says in the content that the driver's snapshot is gone, or another content's, for a content
	// that others hold.
	ClearStatus struct{ Told *Told }

	// ReleaseContent takes our finalizer off, and the being-created mark with it.
	ReleaseContent struct {
		// Told is set when something is, or may be, left at the driver.
		Told *Told
	}
)

func (Ignore) contentStep()         {}
func (Tell) contentStep()           {}
func (Wait) contentStep()           {}
func (Mark) contentStep()           {}
func (Create) contentStep()         {}
func (Poll) contentStep()           {}
func (Record) contentStep()         {}
func (DropMark) contentStep()       {}
func (Confirm) contentStep()        {}
func (Delete) contentStep()         {}
func (Remove) contentStep()         {}
func (ClearStatus) contentStep()    {}
func (ReleaseContent) contentStep() {}
