// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"fmt"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/params"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// advised is an error about which its reader can do something. Its text stays what users and their tools
// search for; what would help is told behind it.
type advised struct {
	error
	advice string
}

func (a advised) Unwrap() error { return a.error }

func advise(err error, format string, args ...any) error {
	return advised{err, fmt.Sprintf(format, args...)}
}

// adviceOf is what would help against an error, empty where nobody knows.
func adviceOf(err error) string {
	var knows advised
	if !errors.As(err, &knows) {
		return ""
	}
	return knows.advice
}

// told is a message with what would help behind it.
func told(message, advice string) string {
	if advice == "" {
		return message
	}
	return message + "; " + advice
}

// byItself ends advice about what is looked at again without anybody asking.
const byItself = "it is looked at again by itself"

// newSnapshot ends advice about what cannot be changed in a VolumeSnapshot that exists.
const newSnapshot = "in a new VolumeSnapshot"

// noClaim names the claim, which the error of old does not.
func noClaim(in SnapshotInput) error {
	name := ""
	if from := in.Snapshot.Spec.Source.PersistentVolumeClaimName; from != nil {
		name = *from
	}
	return advise(errNoClaim, "there is no claim %s in namespace %s: create it, or name another one %s", name, in.Snapshot.Namespace, newSnapshot)
}

// blameClass advises about parameters of a class.
func blameClass(class *snapv1.VolumeSnapshotClass, err error) error {
	name := "VolumeSnapshotClass " + class.Name
	if mistake := new(params.Mistake); errors.As(err, &mistake) {
		return advise(err, "%s; %s", mistake.Place(name), byItself)
	}
	return advise(err, "look at the parameters of %s; %s", name, byItself)
}

func adviseClass(name string) string {
	return fmt.Sprintf("create VolumeSnapshotClass %s, or name another one %s", name, newSnapshot)
}

// adviseVerdict says what would bring a snapshot and the content that it names together.
func adviseVerdict(in SnapshotInput, verdict binding.Verdict) string {
	s, c := in.Snapshot, in.Content
	switch {
	case c == nil && binding.IsPreProvisioned(s):
		return fmt.Sprintf("create VolumeSnapshotContent %s, whose spec.volumeSnapshotRef is %s/%s", binding.ContentName(s), s.Namespace, s.Name)
	case c == nil:
		return fmt.Sprintf("VolumeSnapshotContent %s is gone, and only it said where the data is: if the driver still has the snapshot, snapshotter import brings it back under another name", binding.ContentName(s))
	case strings.Contains(verdict.Message, "spec.volumeSnapshotRef"):
		return "" // says so itself
	case verdict.Reason == wellknown.ReasonSnapshotContentMisbound:
		// Whose it is, is not for everybody who can name a content.
		return fmt.Sprintf("its spec.volumeSnapshotRef would have to be %s/%s with UID %q", s.Namespace, s.Name, s.UID)
	case binding.IsPreProvisioned(s):
		return fmt.Sprintf("VolumeSnapshotContent %s has no spec.source.snapshotHandle: name one that has it %s", c.Name, newSnapshot)
	default:
		return fmt.Sprintf("VolumeSnapshotContent %s has a spec.source.snapshotHandle, and is of no use to a snapshot of a claim", c.Name)
	}
}

// adviseSecret says where the secret of a call is named that could not be read.
func adviseSecret(in ContentInput, step ContentStep, err error) string {
	c := in.Content
	// The name of the content ends the command behind it: said twice, it takes the room of the rest where names are long.
	who := fmt.Sprintf("annotations %s and %s of its VolumeSnapshotContent name it", wellknown.AnnSnapshotDeletionSecretName, wellknown.AnnSnapshotDeletionSecretNamespace)
	if ownClass(in) != nil {
		_, looks := step.(Poll)
		kind := params.Snapshotter
		if looks {
			kind = params.SnapshotterList
		}
		class := fmt.Sprintf("VolumeSnapshotClass %s names it in its %s", in.Class.Name, params.Parameters(params.SecretKeys(kind, in.Class.Parameters)))
		switch {
		case looks:
			who = class
		case len(params.SecretKeys(kind, in.Class.Parameters)) > 0:
			who = class + ", and " + who
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return who + "; create that secret; " + nextTry(c) + goesWithout(c, step)
	case apierrors.IsForbidden(err):
		return wellknown.GrantRight(wellknown.ComponentSecrets, "deploy/snapshotter/rbac.yaml", wellknown.AccountIn(err)) + "; " + nextTry(c)
	}
	return ""
}

// adviseRight is about what has to be read before data is deleted, and may not be.
func adviseRight(c *snapv1.VolumeSnapshotContent, err error) string {
	return wellknown.GrantRight("", "deploy/snapshotter/rbac.yaml", wellknown.AccountIn(err)) + "; " + nextTry(c)
}

// nextTry is when a call is tried again that waits for its secret, and how to have that sooner: no watch tells of
// secrets, since nobody may list them.
func nextTry(c *snapv1.VolumeSnapshotContent) string {
	return "it is tried again by itself, within --retry-interval-max (5m if not set), or at once with kubectl annotate vsc " +
		c.Name + " --overwrite " + wellknown.AnnRetry + "=$(date +%s)"
}

// goesWithout says of what goes that it does not wait for its secret for ever. A call that only looks needs it.
func goesWithout(c *snapv1.VolumeSnapshotContent, step ContentStep) string {
	if _, looks := step.(Poll); looks || c.DeletionTimestamp == nil {
		return ""
	}
	return fmt.Sprintf("; if it stays missing for %d minutes, the deletion goes on without it", int(secretPatience.Minutes()))
}

// adviseHandle is about a handle that somebody has written and that the driver does not know.
func adviseHandle(c *snapv1.VolumeSnapshotContent, err error) string {
	handle := c.Spec.Source.SnapshotHandle
	if handle == nil || !fault.IsNotFound(err) && err.Error() != errNotFound(*handle).Error() {
		return ""
	}
	ref := c.Spec.VolumeSnapshotRef
	return fmt.Sprintf("look at the storage of driver %s what the snapshot is called there; a handle cannot be changed here: snapshotter explain -n %s %s says how to import it anew",
		c.Spec.Driver, ref.Namespace, ref.Name)
}

// adviseUnbound is about a claim without a volume.
func adviseUnbound(claim *corev1.PersistentVolumeClaim) string {
	return fmt.Sprintf("see why the claim is not bound: provisioner explain -n %s %s; %s", claim.Namespace, claim.Name, byItself)
}

// adviseForeign is about a driver that nobody works for.
func adviseForeign(of owner, class *snapv1.VolumeSnapshotClass) string {
	text := fmt.Sprintf("see that the pods of driver %s have a snapshotter beside the driver", of.driver)
	if class != nil {
		text += fmt.Sprintf("; if another driver is meant, correct the driver of VolumeSnapshotClass %s, and the snapshot goes on by itself", class.Name)
	}
	return text
}
