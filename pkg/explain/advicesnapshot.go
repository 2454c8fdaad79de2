// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// adviseSnapshot says what somebody can do about a VolumeSnapshot that does not go on.
func adviseSnapshot(in snapshot.SnapshotInput, step snapshot.SnapshotStep) []string {
	switch s := step.(type) {
	case snapshot.WaitForRestore:
		if len(s.Claims) == 0 {
			return []string{"wait until the provisioner takes its finalizer off; if it does not, look into its log"}
		}
		return []string{"wait until they are bound, or delete them: " + strings.Join(s.Claims, ", ")}
	case snapshot.Reject:
		return adviseOnce(s.Advice)
	case snapshot.Tell:
		return adviseOnce(s.Advice)
	case snapshot.Unserved:
		return adviseUnserved(in)
	case snapshot.Ignore, snapshot.Wait:
		return adviseQuiet(in)
	}
	return nil
}

// adviseOnce is advice that the event has too.
func adviseOnce(advice string) []string {
	if advice == "" {
		return nil
	}
	return []string{advice}
}

func adviseUnserved(in snapshot.SnapshotInput) []string {
	if in.Content == nil {
		return nil
	}
	return []string{fmt.Sprintf("look whether the pods of driver %s have a snapshotter beside the driver, and what its log says; it names the rights that it lacks", in.Content.Spec.Driver)}
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
	case snapshot.Create:
		if s.Parameters != "" && c.Annotations[wellknown.AnnSnapshotParameters] != "" {
			return adviseCorrected(in)
		}
		return adviseAnswered(in)
	case snapshot.Poll:
		return adviseAnswered(in)
	case snapshot.Delete:
		return adviseDeletion(failureOf(c))
	case snapshot.Record:
		return adviseOnce(s.Advice)
	case snapshot.Tell:
		return adviseOnce(s.Advice)
	}
	return nil
}

// adviseAnswered is about a content that the driver has said something of, and is asked about again.
func adviseAnswered(in snapshot.ContentInput) []string {
	c := in.Content
	said, class := failureOf(c), "the VolumeSnapshotClass"
	if in.Class != nil {
		class = "VolumeSnapshotClass " + in.Class.Name
	}
	switch handle := c.Spec.Source.SnapshotHandle; {
	case handle != nil && (strings.Contains(said, snapshot.ErrNotFound(*handle).Error()) || fault.CodeIn(said) == "NotFound"):
		return adviseUnknown(c)
	case fault.CodeIn(said) == "InvalidArgument" && in.Class != nil && handle == nil:
		return []string{fmt.Sprintf("the same will be refused again: compare the words of the driver with what is asked for, and with the parameters of %s, which can be corrected in place: kubectl edit volumesnapshotclass %s; the next try sends what the class says then",
			class, in.Class.Name)}
	case fault.IsFromDriver(said):
		return []string{adviseAnswer(said, class)}
	}
	return nil
}

// failureOf is the error in the status of a content, empty if there is none.
func failureOf(c *snapv1.VolumeSnapshotContent) string {
	if c.Status == nil || c.Status.Error == nil || c.Status.Error.Message == nil {
		return ""
	}
	return *c.Status.Error.Message
}

// adviseCorrected is about a class that says something else by now than what the driver has refused.
func adviseCorrected(in snapshot.ContentInput) []string {
	return []string{fmt.Sprintf("VolumeSnapshotClass %s says something else by now than what the driver has refused: the next try sends that; it comes by itself, or at once with kubectl annotate vsc %s --overwrite %s=$(date +%%s)",
		in.Class.Name, in.Content.Name, wellknown.AnnRetry)}
}

// adviseUnknown is about a handle that somebody has written, and that the driver does not know. It cannot be changed.
func adviseUnknown(c *snapv1.VolumeSnapshotContent) []string {
	how := "--driver-name=" + c.Spec.Driver + " --deletion-policy=" + string(c.Spec.DeletionPolicy)
	if class := c.Spec.VolumeSnapshotClassName; class != nil {
		how = "--class=" + *class
	}
	return []string{
		fmt.Sprintf("look at the storage of driver %s what the snapshot is called there, to the letter; if %q comes to be there, this goes on by itself", c.Spec.Driver, *c.Spec.Source.SnapshotHandle),
		"if it is called otherwise, or is of another driver, neither can be changed here: " + importAnew(c, "HANDLE "+how),
	}
}

// importAnew is how a content is made again of which something is wrong that cannot be changed.
func importAnew(c *snapv1.VolumeSnapshotContent, handle string) string {
	ref := c.Spec.VolumeSnapshotRef
	return fmt.Sprintf("kubectl delete volumesnapshot -n %s %s; kubectl delete volumesnapshotcontent %s --ignore-not-found; then snapshotter import -n %[1]s %[2]s --handle=%[4]s",
		ref.Namespace, ref.Name, c.Name, handle)
}
