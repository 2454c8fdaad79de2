// SPDX-License-Identifier: Apache-2.0

// Package snapshot owns the two machines of snapshots: what should happen next to a VolumeSnapshot, and
// what to a VolumeSnapshotContent, together with the statuses and objects that this implies.
//
// It must not know clients, clocks, queues or the driver's connection: it gets plain objects and facts, and
// returns one small step. After each step the room looks again and asks again, so that a crash between any
// two effects leads to the same decision as no crash.
//
// In the walk of a snapshot it stands twice between gather and act: NextSnapshotStep for the half that
// binds snapshots and contents, NextContentStep for the half that speaks to the driver.
//
// A living VolumeSnapshot (each arrow is one step, and one write at most):
//
//	                not ours, member of a group ──────────────► Ignore, Tell
//	                wrong source, class, claim, content ──────► Reject ──(something changes)──┐
//	                                                                                          ▼
//	new ──Protect (default class, both finalizers)──► FetchVolume ──► ProtectSource ──► CreateContent
//	 │                                                                                        │
//	 └─(names a content)──Protect──► Bind ───────────────────────────────────────────────┐    │
//	                                                                                     ▼    ▼
//	        settled ◄──ReleaseSource◄──(ready)── CopyStatus ◄──(the content says so)── waiting ──► (Unserved)
//
// A VolumeSnapshot that is being deleted:
//
//	content points back ──(a claim, or the provisioner, restores from it)──► WaitForRestore
//	      │ Retain: MarkContent ───────────────────────────────┐
//	      │ Delete: (MarkContent) ► DeleteContent ► Wait       ▼     (Unserved, AbandonContent)
//	      └──────────────(content certainly gone)────► ReleaseSource ► Release
//
// A snapshot that is gone without having been taken apart: its content ──► (FetchSnapshot) ► DeleteContent ►
// (MarkContent); see NextForLeftover.
//
// A VolumeSnapshotContent:
//
//	taken from a volume:  no handle ──Create──► handle, not ready ──Poll──► ready ──► (DropMark) settled
//	                         ▲  │ error: Record, try again later
//	                         └──┘
//	made by hand:         not ready ──Poll──► ready
//
//	Terminating:  outcome of a create open ──Create again──► handle, or certainly nothing
//	              snapshot alive ──► as if living
//	              permitted ──(Delete, handle)──► Confirm ► Delete ► (ClearStatus) ► Release
//	                        └─(Retain, no handle, member of a group, handle of another content too)──► Release
package snapshot

import (
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
)

// Scope is whose snapshots the binding half takes care of.
type Scope int

const (
	// Own: those of the program's own driver.
	Own Scope = iota
	// All: those of every driver in the cluster.
	All
)

// SnapshotOptions are what the program was told about binding.
type SnapshotOptions struct {
	// Driver is the name of the driver beside us, whose contents our own other half takes care of. It is
	// empty for a binder without driver.
	Driver string
	Scope  Scope
	// PreventVolumeModeConversion writes the source's volume mode on contents, so that consumers refuse
	// another one.
	PreventVolumeModeConversion bool
	// NamePrefix and NameLength are those of ContentOptions in the driver's sidecar; without a prefix they are not known.
	NamePrefix string
	NameLength int
	// Distributed tells that contents are seen to by processes that each serve one node.
	Distributed bool
	// Node is the only one whose contents our own other half takes care of; empty when it does of those of all.
	Node string
}

// SnapshotInput is all that a decision about a VolumeSnapshot may depend on.
type SnapshotInput struct {
	// Snapshot is nil when only its former claim is left to look at.
	Snapshot *snapv1.VolumeSnapshot
	// SnapshotLive says that the object was read from, or written to, the API server just now.
	SnapshotLive bool

	// Content is the one that the snapshot names, or that was made for it.
	Content *snapv1.VolumeSnapshotContent
	// ContentLive says that Content, or its absence, is certain: read live, or seen to be deleted.
	ContentLive bool
	// GoneDriver is the driver of the content that was seen to be deleted, empty when none was.
	GoneDriver string

	// Class is the one that the snapshot names, nil when it does not exist.
	Class *snapv1.VolumeSnapshotClass
	// ClassSince is when the class was last seen to come or to change, zero when that was before this process.
	ClassSince time.Time
	// ContentClass is the one that Content names, nil when it does not exist.
	ContentClass *snapv1.VolumeSnapshotClass
	// Classes are all classes; read only when the snapshot names none.
	Classes []*snapv1.VolumeSnapshotClass

	// Claim is the source, nil when it does not exist.
	Claim *corev1.PersistentVolumeClaim
	// ClaimInUse says that another living snapshot of the claim is not ready yet; looked at only while the
	// claim carries our finalizer.
	ClaimInUse bool

	// Volume is the claim's volume; VolumeRead says that it was looked for.
	Volume     *corev1.PersistentVolume
	VolumeRead bool

	// UnservedTold says that users were told that nobody works on the content.
	UnservedTold bool

	// Restoring are the pending claims that are to be filled from this snapshot.
	Restoring []string
	// Node is whose sidecar has to take the snapshot, empty when any may; NodeErr why it is not known.
	Node    string
	NodeErr error

	Now     time.Time
	Options SnapshotOptions
}

const (
	// earlyBind is how long a driver may take before the snapshot's status says that it is being taken. A
	// faster driver saves the write and its event. It is counted from the creation of the content, which the
	// API tells in whole seconds, and where hundreds are made at once most of it is spent in queues.
	earlyBind = 5 * time.Second
	// strangerDelay is how long a snapshot that nobody can claim is left to others before we speak.
	strangerDelay = 5 * time.Second
	// orphanDelay is how long a deleted snapshot that nobody can claim is left to others before its
	// finalizers are lifted.
	orphanDelay = 30 * time.Second
	// restorePatience is how long a deletion waits for claims that have not protected the snapshot.
	restorePatience = time.Minute
)

// Told is something that users should learn from an event.
type Told struct {
	Warning bool
	Reason  string
	Message string
}
