// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Group is what is known of a VolumeGroupSnapshot.
type Group struct {
	Namespace, Name string
	// Class is the name of its class; empty where the default class is meant.
	Class string
	// Given is set when it exists at a driver already, which its content names.
	Given bool
	// Ready is set when another program has taken it, Leaving while it is being deleted.
	Ready, Leaving bool
}

// GroupClass is what is known of a VolumeGroupSnapshotClass.
type GroupClass struct {
	Driver    string
	IsDefault bool
}

// BuildGroupNotice is what users are told of a group snapshot that nobody works on, since this sidecar is in the place of the one that would: taking
// groups is not built. Nothing is told of one of another driver, or whose driver is not certain. With an empty driver
// the process is there for all.
func BuildGroupNotice(g Group, driver string, classes map[string]GroupClass) (Told, bool) {
	if g.Ready && !g.Leaving || !isGroupOf(g, driver, classes) {
		return Told{}, false
	}
	told := Told{Warning: true, Reason: wellknown.ReasonGroupSnapshotNotSupported}
	if g.Leaving {
		told.Message = fmt.Sprintf("VolumeGroupSnapshot %s/%s is not deleted: this build of the snapshotter has no group snapshots, and leaves its finalizer and the data of its members alone; "+
			"run the csi-snapshotter and the snapshot-controller that took it until it is gone", g.Namespace, g.Name)
		return told, true
	}
	told.Message = fmt.Sprintf("VolumeGroupSnapshot %s/%s is not taken: this build of the snapshotter has no group snapshots; "+
		"make a VolumeSnapshot of each claim, or run the csi-snapshotter and the snapshot-controller that have the feature gate CSIVolumeGroupSnapshot", g.Namespace, g.Name)
	return told, true
}

// isGroupOf tells whether a group is for the driver. A group without a class is when every default class is of the driver.
func isGroupOf(g Group, driver string, classes map[string]GroupClass) bool {
	if driver == "" {
		return true
	}
	if g.Class != "" || g.Given {
		return classes[g.Class].Driver == driver
	}
	found := false
	for _, class := range classes {
		if !class.IsDefault {
			continue
		}
		if class.Driver != driver {
			return false
		}
		found = true
	}
	return found
}
