// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
)

// SnapshotStep is what should happen next to a VolumeSnapshot. The set is closed. After a step that changes
// or reads something the machine is asked again; Ignore, Wait, Tell, Reject and WaitForRestore end a round.
//
//sumtype:decl
type SnapshotStep interface{ snapshotStep() }

type (
	// Ignore: nothing is to be done until something changes.
	Ignore struct{ Why string }

	// Wait: look again after a while.
	Wait struct {
		Why   string
		After time.Duration
	}

	// Tell says something in an event only, since the snapshot may be somebody else's.
	Tell struct {
		Told
		// Advice is what ends the message, where somebody knows what would help.
		Advice string
	}

	// Reject shows an error. Status is nil, and nothing is told, when users see it already.
	Reject struct {
		Reason  string
		Message string
		// Advice is what ends the message, where somebody knows what would help.
		Advice string
		Status *snapv1.VolumeSnapshotStatus
		// Waiting is set when nothing is wrong, and what is missing comes by itself.
		Waiting bool
		// Quiet is set when only the status is out of date and the event was told before.
		Quiet bool
	}

	// Protect writes the default class, if one was chosen, and the finalizers, in one patch.
	Protect struct {
		Class      string
		Finalizers []string
	}

	// ProtectSource puts our finalizer on the source claim.
	ProtectSource struct{}
	// ReleaseSource takes it off.
	ReleaseSource struct{}

	// FetchSnapshot reads the snapshot live: what comes next must not follow from an old copy.
	FetchSnapshot struct{}
	// FetchContent reads a content live, or learns that there is none.
	FetchContent struct{ Name string }
	// FetchVolume reads the volume of the claim. One read for each snapshot is cheaper than a cache of all.
	FetchVolume struct{ Name string }

	// CreateContent writes the content, and with it all that taking the snapshot needs.
	CreateContent struct{ Content *snapv1.VolumeSnapshotContent }

	// ProtectContent puts our finalizer on a content that was made without.
	ProtectContent struct{}

	// Bind makes a pre-provisioned content point back: the UID, and what else is missing, in one patch.
	Bind struct {
		Class       string
		Annotations map[string]string
		// Unmark removes a being-deleted mark that an earlier life of a retained content left.
		Unmark bool
	}

	// CopyStatus writes the snapshot's status as the content says.
	CopyStatus struct {
		Status *snapv1.VolumeSnapshotStatus
		Told   []Told
	}

	// WaitForRestore keeps everything because claims are being filled from the snapshot.
	WaitForRestore struct{ Claims []string }

	// MarkContent puts the being-deleted mark on the content.
	MarkContent struct{}
	// DeleteContent deletes the content object.
	DeleteContent struct{}

	// Unserved tells that nobody works on the content, in an event only.
	Unserved struct{ Told }
	// AbandonContent takes our finalizer off a content whose driver is gone for good, which is otherwise for
	// the driver's sidecar to do.
	AbandonContent struct{ Told }

	// Release takes finalizers off.
	Release struct{ Finalizers []string }
)

func (Ignore) snapshotStep()         {}
func (Wait) snapshotStep()           {}
func (Tell) snapshotStep()           {}
func (Reject) snapshotStep()         {}
func (Protect) snapshotStep()        {}
func (ProtectSource) snapshotStep()  {}
func (ReleaseSource) snapshotStep()  {}
func (FetchSnapshot) snapshotStep()  {}
func (FetchContent) snapshotStep()   {}
func (FetchVolume) snapshotStep()    {}
func (CreateContent) snapshotStep()  {}
func (ProtectContent) snapshotStep() {}
func (Bind) snapshotStep()           {}
func (CopyStatus) snapshotStep()     {}
func (WaitForRestore) snapshotStep() {}
func (MarkContent) snapshotStep()    {}
func (DeleteContent) snapshotStep()  {}
func (Unserved) snapshotStep()       {}
func (AbandonContent) snapshotStep() {}
func (Release) snapshotStep()        {}
