// SPDX-License-Identifier: Apache-2.0

// Package provision owns the machines of the provisioner: what happens next to a claim that waits for a
// volume, to a volume, and to an object that volumes were made from. Everything that is sent to the driver for a volume,
// and everything that is written on a PersistentVolume, is built here.
//
// It must not know clients, clocks or queues: objects and answers come in as values, and what goes out
// is a step whose effect somebody else has.
//
// In the walks it stands in the middle: the rooms of claims and of volumes gather, ask here, and act.
//
// The claim machine:
//
//	claim ──► not ours, bound, terminating, no consumer yet ─────────────────► Ignore
//	  │       refused as infeasible a short while ago ───────────────────────► Wait
//	  │       no class, a bad claim or class, a bad source ──────────────────► Reject
//	  │       selected node is gone or not allowed ──────────────────────────► Reschedule
//	  │       source not read yet / not protected yet ───────────────────────► ReadSource / ProtectSource
//	  ▼
//	Create ──► AfterCreate ──► Provisioned ──► BuildVolume, written ─────────► done
//	  ▲            │  │ │ └──► Undo: wrong volume, removed ───┐     (FinishUndo until that is certain)
//	  │            │  │ └────► TryLater, Infeasible ──────────┤ attempt forgotten, built anew
//	  │            │  └──────► Reschedule: node given back ───┘
//	  │            └─────────► KeepTrying: outcome open, attempt kept
//	  └──── Resume ◄───────────────┘   (also when the claim is gone)  ──► LetGo
//
// The volume machine:
//
//	Bound, policy Delete, no finalizer ──► Protect       policy Retain, finalizer ──► Unprotect
//	Released, policy Delete ──► WaitDetached ──► Confirm (live) ──► Delete ──► Release
//	                                                └─ somebody else needs the data ──► Reject
package provision

import (
	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// Options are the flags that steer the machines.
type Options struct {
	NamePrefix string
	NameLength int
	// NameTemplate, when set, makes the names instead of prefix and length.
	NameTemplate string
	// DefaultFSType is used when the class names none.
	DefaultFSType string
	// ExtraCreateMetadata adds the names of claim and volume to the driver's parameters.
	ExtraCreateMetadata bool
	// Metadata is what the driver is told of the claim and its namespace.
	Metadata Metadata
	// RestoreSize is RefuseSmaller or GrowSmaller, for claims that ask for less than their snapshot needs.
	RestoreSize string
	// RestoreTopology is IgnoreSource or PreferSource.
	RestoreTopology string
	// PublishReadOnly marks volumes of claims that only read as read-only.
	PublishReadOnly bool
	// PreventModeConversion guards restores that would turn a file system into a block device or back.
	PreventModeConversion bool
	// Topology is false when the feature is off although the driver has it.
	Topology bool
	// Places says how the topology requirement is made.
	Places topology.Options
	// CrossNamespace allows sources in other namespaces, for those who have a grant.
	CrossNamespace bool
	// AttributesClass is false when VolumeAttributesClasses are ignored.
	AttributesClass bool
	// Racing is about claims without a node, in a process that serves one node.
	Racing Racing
}

// Config is what stays the same while a process lives.
type Config struct {
	// Driver is its name.
	Driver string
	// Identity of the process is noted in each volume.
	Identity     string
	Capabilities capability.Set
	// Migration is nil for drivers that replace nothing.
	Migration Translator
	// Local is the part of the cluster that this process serves.
	Local
	Options
}

// hasTopology tells whether places matter at all.
func (c Config) hasTopology() bool { return c.Topology && c.Capabilities.HasTopology() }
