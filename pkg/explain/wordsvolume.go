// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// claimRows are the steps of claims, and those that several machines of the provisioner have.
func claimRows() []row {
	return []row{
		about(func(s provision.Ignore) Words { return does("Does nothing for now: %s.", s.Why) }),
		about(func(s provision.Wait) Words { return does("Waits %s: %s.", span(s.After), s.Why) }),
		about(rejected),
		about(func(provision.AskRoom) Words { return does("Asks the driver how much room there is on its node.") }),
		about(func(s provision.BecomeOwner) Words {
			return does("Takes the claim for node %s, by writing its name into the claim: the first node that does makes the volume.", s.Node)
		}),
		about(func(s provision.StandBack) Words {
			w := does("Leaves the claim to other nodes, and looks again by itself: %s.", s.Why)
			if s.Tell {
				w.Event = said(s.Err)
			}
			return w
		}),
		about(func(s provision.Discard) Words {
			return does("Removes volume %s, which was made here while the claim went to another node.", attemptName(s.Attempt))
		}),
		about(func(s provision.FinishUndo) Words {
			return does("Asks the driver again to remove volume %s, which was not as asked for: it has not said yet whether it has.", attemptName(s.Attempt))
		}),
		about(func(s provision.AlreadyProvisioned) Words {
			if s.Volume == nil {
				return does("The volume is made and its PersistentVolume is written: Kubernetes binds the claim.")
			}
			return does("The volume is made and PersistentVolume %s is written: Kubernetes binds the claim.", s.Volume.Name)
		}),
		about(func(provision.LeaveToPopulator) Words {
			return told("The source is of a kind that the driver does not know: ", provision.LeftToPopulator)
		}),
		about(func(s provision.ReadSource) Words { return does("Reads the source, %s.", sourceName(s.Source)) }),
		about(func(s provision.ProtectSource) Words {
			return does("Puts its finalizer on the source, %s, so that the data stays while the driver copies it.", sourceName(s.Source))
		}),
		about(func(s provision.ReadAttributes) Words { return does("Reads VolumeAttributesClass %s.", s.Name) }),
		about(func(s provision.ReadNamespace) Words {
			return does("Reads Namespace %s, whose labels and annotations the driver is to know.", s.Name)
		}),
		about(func(s provision.Create) Words {
			return does("Asks the driver for volume %s.", attemptName(s.Attempt))
		}),
		about(func(s provision.Resume) Words {
			return does("Repeats the very same request for volume %s, to learn what became of the first.", attemptName(s.Attempt))
		}),
		about(func(s provision.Save) Words {
			return does("The driver has made volume %s: its PersistentVolume is written.", attemptName(s.Attempt))
		}),
		about(func(s provision.Reschedule) Words {
			return Words{Does: "Gives the claim back to the scheduler, which should choose another node: " + text(s.Err), Event: said(s.Err)}
		}),
	}
}

func rejected(s provision.Reject) Words {
	w := Words{Does: "Cannot go on, and looks again by itself: " + text(s.Err)}
	if s.Waiting {
		w.Does = "Waits, and goes on by itself: " + text(s.Err)
	}
	if !s.Silent {
		w.Event = said(s.Err)
	}
	return w
}

// volumeRows are the steps of PersistentVolumes.
func volumeRows() []row {
	return []row{
		about(func(provision.Protect) Words {
			return does("Puts the finalizer %s on the PersistentVolume, so that the data goes with it whichever of the two is deleted first.", wellknown.FinalizerVolume)
		}),
		about(func(provision.Unprotect) Words {
			return does("Takes the finalizer %s off: the reclaim policy says that the volume is to be kept.", wellknown.FinalizerVolume)
		}),
		about(func(s provision.WaitDetached) Words {
			return does("Waits with the deletion, because a node may still use the volume: it is still attached to node %s.", s.Node)
		}),
		about(func(provision.Confirm) Words {
			return does("Reads the PersistentVolume once more before it is deleted.")
		}),
		about(func(s provision.Delete) Words {
			w := does("Asks the driver to delete volume %s.", s.Handle)
			if s.MayLackSecret {
				w.Does += " Its secret has been missing for long, so one try goes without."
			}
			return w
		}),
		about(func(provision.Release) Words {
			return does("The driver has deleted the volume: the finalizer and then the PersistentVolume go.")
		}),
	}
}

// sourceRows are the steps of what volumes are made from.
func sourceRows() []row {
	return []row{
		about(func(s provision.Hold) Words {
			return does("Keeps the finalizer on the source, because it is still needed by %s.", s.By)
		}),
		about(func(provision.Lift) Words {
			return does("Takes its finalizer off the source: no new volume needs it any more.")
		}),
	}
}

func sourceName(s provision.Source) string {
	return fmt.Sprintf("%s %s/%s", s.Kind, s.Namespace, s.Name)
}

func attemptName(a *provision.Attempt) string {
	if a == nil {
		return "without a name"
	}
	return a.Name()
}
