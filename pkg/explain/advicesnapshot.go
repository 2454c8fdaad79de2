// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
)

// adviseSnapshot says what somebody can do about a VolumeSnapshot that does not go on.
func adviseSnapshot(in snapshot.SnapshotInput, step snapshot.SnapshotStep) []string {
	switch s := step.(type) {
	case snapshot.WaitForRestore:
		if len(s.Claims) == 0 {
			return []string{"wait until the provisioner takes its finalizer off; if it does not, look into its log"}
		}
		return []string{"wait until they are bound, or delete them: " + strings.Join(s.Claims, ", ")}
	case snapshot.Reject, snapshot.Tell:
		return adviseRefused(in)
	case snapshot.Ignore:
		return adviseQuiet(in)
	}
	return nil
}

func adviseRefused(in snapshot.SnapshotInput) []string {
	s := in.Snapshot
	if name := s.Spec.VolumeSnapshotClassName; name != nil && in.Class == nil && in.Content == nil {
		return []string{fmt.Sprintf("create VolumeSnapshotClass %s, or name another one in a new VolumeSnapshot", *name)}
	}
	if in.Content != nil {
		return adviseMisbound(in)
	}
	if binding.IsPreProvisioned(s) {
		return []string{fmt.Sprintf("create VolumeSnapshotContent %s, with a reference to this VolumeSnapshot", binding.ContentName(s))}
	}
	switch claim := in.Claim; {
	case claim == nil:
		return []string{"create the claim, or name another one in a new VolumeSnapshot"}
	case claim.Status.Phase != corev1.ClaimBound:
		return []string{fmt.Sprintf("see why the claim is not bound: provisioner explain -n %s %s", claim.Namespace, claim.Name)}
	case in.Class != nil && in.Volume != nil && driverOf(in.Volume) != in.Class.Driver:
		return []string{fmt.Sprintf("name a VolumeSnapshotClass of driver %s in a new VolumeSnapshot", driverOf(in.Volume))}
	case s.Spec.VolumeSnapshotClassName == nil:
		return []string{"mark exactly one VolumeSnapshotClass of the claim's driver as default, or name a class in a new VolumeSnapshot"}
	default:
		return []string{"change what the message names; it is looked at again by itself"}
	}
}

func adviseMisbound(in snapshot.SnapshotInput) []string {
	ref := in.Content.Spec.VolumeSnapshotRef
	return []string{fmt.Sprintf("look at spec.volumeSnapshotRef of VolumeSnapshotContent %s: it points at %s/%s with UID %q, and this VolumeSnapshot has UID %q",
		in.Content.Name, ref.Namespace, ref.Name, ref.UID, in.Snapshot.UID)}
}

// adviseQuiet is for a snapshot that nothing is done about.
func adviseQuiet(in snapshot.SnapshotInput) []string {
	s, c := in.Snapshot, in.Content
	switch {
	case s == nil:
		return nil
	case c != nil && c.Spec.Driver != in.Options.Driver && in.Options.Scope == snapshot.Own:
		return []string{fmt.Sprintf("look at the snapshotter of driver %s, or run this with --driver-name=%[1]s", c.Spec.Driver)}
	case in.Class != nil && in.Class.Driver != in.Options.Driver && in.Options.Scope == snapshot.Own:
		return []string{fmt.Sprintf("look at the snapshotter of driver %s, or run this with --driver-name=%[1]s", in.Class.Driver)}
	case s.DeletionTimestamp != nil && len(s.Finalizers) > 0:
		return []string{"see below who holds it, and what is done with its content"}
	}
	return nil
}

// adviseContent says what somebody can do about a content that does not go on.
func adviseContent(in snapshot.ContentInput, step snapshot.ContentStep) []string {
	c := in.Content
	switch s := step.(type) {
	case snapshot.Ignore:
		switch {
		case c.Spec.Driver != in.Options.Driver:
			return []string{fmt.Sprintf("look at the snapshotter of driver %s, or run this with --driver-name=%[1]s", c.Spec.Driver)}
		case c.DeletionTimestamp != nil && in.Snapshot == snapshot.Alive:
			return []string{"the content is being deleted while its VolumeSnapshot lives: its data stays until that is deleted too"}
		}
	case snapshot.Record:
		if s.Failure != "" && in.Class == nil && c.Spec.VolumeSnapshotClassName != nil {
			return []string{fmt.Sprintf("create VolumeSnapshotClass %s again", *c.Spec.VolumeSnapshotClassName)}
		}
	case snapshot.Tell:
		return []string{"make the content anew, with exactly one of source.volumeHandle and source.snapshotHandle"}
	}
	return nil
}
