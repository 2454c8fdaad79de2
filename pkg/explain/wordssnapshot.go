// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"

	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
)

// snapshotRows are the steps of VolumeSnapshots, and those that contents have as well.
func snapshotRows() []row {
	return append([]row{
		about(func(s snapshot.Ignore) Words { return does("Does nothing for now: %s.", s.Why) }),
		about(func(s snapshot.Wait) Words { return does("Waits %s: %s.", span(s.After), s.Why) }),
		about(func(s snapshot.Tell) Words {
			return advised("Says so in an event and does nothing: ", s.Message, s.Advice)
		}),
		about(func(s snapshot.Reject) Words {
			return advised("Cannot go on, says so in the status, and looks again by itself: ", s.Message, s.Advice)
		}),
		about(func(s snapshot.Protect) Words {
			w := does("Puts finalizers on the VolumeSnapshot: %s.", strings.Join(s.Finalizers, ", "))
			if s.Class != "" {
				w.Does = "Gives the VolumeSnapshot the default class, " + s.Class + ". " + w.Does
			}
			return w
		}),
		about(func(snapshot.ProtectSource) Words {
			return does("Puts a finalizer on the source claim, so that it stays until the snapshot is taken.")
		}),
		about(func(snapshot.ReleaseSource) Words {
			return does("Takes its finalizer off the source claim: no snapshot needs it any more.")
		}),
		about(func(s snapshot.WaitForRestore) Words {
			return told("Waits with the deletion. ", snapshot.BeingRestored(s.Claims))
		}),
		about(func(s snapshot.Release) Words {
			return does("Lets the VolumeSnapshot go: takes off %s.", strings.Join(s.Finalizers, ", "))
		}),
	}, boundRows()...)
}

// boundRows are the steps of VolumeSnapshots that concern their content, or only read.
func boundRows() []row {
	return []row{
		about(func(snapshot.FetchSnapshot) Words { return does("Reads the VolumeSnapshot once more.") }),
		about(func(s snapshot.FetchContent) Words { return does("Reads VolumeSnapshotContent %s once more.", s.Name) }),
		about(func(s snapshot.FetchVolume) Words { return does("Reads PersistentVolume %s.", s.Name) }),
		about(func(s snapshot.CreateContent) Words {
			if s.Content == nil {
				return does("Writes the VolumeSnapshotContent, which is the order to the driver.")
			}
			return does("Writes VolumeSnapshotContent %s, which is the order to driver %s.", s.Content.Name, s.Content.Spec.Driver)
		}),
		about(func(snapshot.ProtectContent) Words { return does("Puts its finalizer on the content.") }),
		about(func(s snapshot.Bind) Words {
			w := does("Binds the content, by writing the UID of the VolumeSnapshot into it.")
			if s.Class != "" {
				w.Does += " The content gets the class " + s.Class + "."
			}
			return w
		}),
		about(func(s snapshot.CopyStatus) Words {
			w := does("Writes into the VolumeSnapshot's status what the content's says.")
			if len(s.Told) > 0 {
				w.Event = s.Told[0].Message
			}
			return w
		}),
		about(func(snapshot.MarkContent) Words {
			return does("Marks the content as belonging to a VolumeSnapshot that is being deleted.")
		}),
		about(func(snapshot.DeleteContent) Words { return does("Deletes the content, whose data goes with it.") }),
		about(func(s snapshot.Unserved) Words { return told("Waits, and says so in an event: ", s.Message) }),
		about(func(s snapshot.AbandonContent) Words {
			return told("Takes the finalizer off a content that nobody serves: ", s.Message)
		}),
	}
}

// contentRows are the steps of VolumeSnapshotContents.
func contentRows() []row {
	return []row{
		about(func(snapshot.Mark) Words { return does("Puts the being-created mark back: a create is open.") }),
		about(func(s snapshot.Create) Words {
			return does("Asks the driver for a snapshot named %s of volume %s.", s.Request.GetName(), s.Request.GetSourceVolumeId())
		}),
		about(func(s snapshot.Poll) Words {
			var ways []string
			for _, way := range []struct {
				has  bool
				call string
			}{{s.Get, "GetSnapshot"}, {s.List, "ListSnapshots"}, {s.Again != nil, "the same CreateSnapshot again"}} {
				if way.has {
					ways = append(ways, way.call)
				}
			}
			return does("Waits for the driver: asks whether snapshot %s is ready, by %s.", s.Handle, strings.Join(ways, " or "))
		}),
		about(func(s snapshot.Record) Words {
			switch {
			case s.Failure != "" && s.Told != nil:
				w := advised("Cannot go on, says so in the content's status, and looks again by itself: ", s.Failure, s.Advice)
				w.Event = s.Told.Message
				return w
			case s.Failure != "":
				return does("Cannot go on, has said so in the content's status, and looks again by itself: %s", strings.TrimSuffix(s.Failure, "; "+s.Advice))
			case s.Told != nil:
				return told("Writes the content's status: ", s.Told.Message)
			default:
				return does("Writes the content's status.")
			}
		}),
		about(func(snapshot.DropMark) Words {
			return does("Removes the being-created mark: no create is open any more.")
		}),
		about(func(snapshot.Confirm) Words {
			return does("Reads content and VolumeSnapshot once more before the deletion.")
		}),
		about(func(s snapshot.Delete) Words {
			w := does("Asks the driver to delete snapshot %s.", s.Handle)
			if s.WithoutSecret {
				w.Does += " Its secret has been missing for long, so one try goes without."
			}
			return w
		}),
		about(func(s snapshot.Remove) Words {
			return does("Asks the driver to delete snapshot %s, which it has taken in place of the content's, which it has lost.", s.Handle)
		}),
		about(func(snapshot.ClearStatus) Words {
			return does("Clears the content's status: the driver has deleted the snapshot, and others still hold the content.")
		}),
		about(func(s snapshot.ReleaseContent) Words {
			if s.Told != nil {
				return told("Lets the content go: ", s.Told.Message)
			}
			return does("Lets the content go.")
		}),
	}
}
