// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/params"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// buildCreate makes the request that takes the snapshot. While the outcome of one is open it depends on nothing that changes,
// so that the driver recognises a repeated one.
func buildCreate(in ContentInput) (Create, error) {
	c := in.Content
	parameters, recorded, err := parametersOf(in)
	if err != nil && isClassGivenUp(in) {
		// The name alone tells the driver which snapshot is meant. What is made is deleted next.
		parameters, recorded, err = map[string]string{}, true, nil
	}
	if err != nil {
		return Create{}, err
	}
	named, secret := secretAnnotations(c)
	if named && secret == nil {
		return Create{}, errNoSecretName(c)
	}
	create := Create{Secret: secret, WithoutSecret: isPatienceOver(in), Mark: !isMarked(c)}
	if !recorded {
		create.Parameters = encodeParameters(parameters)
	}
	name := nameAtDriver(in)
	if other, ok := c.Annotations[wellknown.AnnSnapshotName]; ok && other != name {
		create.Mark = true // the record has to name what is asked for before anything is
	}
	if in.Options.ExtraMetadata {
		ref := c.Spec.VolumeSnapshotRef
		parameters[wellknown.ParamVolumeSnapshotName] = ref.Name
		parameters[wellknown.ParamVolumeSnapshotNamespace] = ref.Namespace
		parameters[wellknown.ParamVolumeSnapshotContent] = c.Name
	}
	create.Request = &csi.CreateSnapshotRequest{
		SourceVolumeId: *c.Spec.Source.VolumeHandle, Name: name, Parameters: parameters,
	}
	return create, nil
}

// isClassGivenUp tells that a content which is leaving has waited long enough for the class that an open
// create was made with. The class may be gone for good, and then nobody could ever settle that create.
func isClassGivenUp(in ContentInput) bool {
	since := in.Attempt.LeavingSince
	return isEnd(in) && !since.IsZero() && in.Now.Sub(since) >= classPatience
}

// isGuess tells that a create is sent without knowing the parameters of the one that it repeats.
func isGuess(in ContentInput) bool {
	_, _, err := parametersOf(in)
	return err != nil && isClassGivenUp(in)
}

// nameAtDriver is the name on record, or one that depends on the snapshot's UID and the flags alone, so it survives even a content that is
// made anew. A record that was copied from the content of another snapshot does not count: the driver would answer with that one. Nor does
// one under which nothing can be: what the driver has refused may have been the name, and the flags may say another by now.
func nameAtDriver(in ContentInput) string {
	uid := string(in.Content.Spec.VolumeSnapshotRef.UID)
	recorded := in.Content.Annotations[wellknown.AnnSnapshotName]
	if (wellknown.IsNameFor(recorded, uid) || isAskedUnder(in, recorded)) && !isNameFree(in) {
		return recorded
	}
	return wellknown.Name(in.Options.NamePrefix, uid, in.Options.NameLength)
}

// isAskedUnder tells that a call under the name has no certain outcome, which stays so when somebody edits the reference to the snapshot. The content
// is named after the snapshot that it was made for.
func isAskedUnder(in ContentInput, recorded string) bool {
	madeFor, isOurs := strings.CutPrefix(in.Content.Name, wellknown.ContentName(""))
	return isOurs && in.Attempt.Tried == Open && wellknown.IsNameFor(recorded, madeFor)
}

// isNameFree tells that there is certainly nothing at the driver under the name on record.
func isNameFree(in ContentInput) bool {
	return in.Attempt.Refused && !MayExist(in) && in.Taken == nil && in.Content.DeletionTimestamp == nil
}

// parametersOf gives the driver's parameters: those on record, unless the driver has refused them for certain and the class says
// otherwise by now; else those of the class.
func parametersOf(in ContentInput) (parameters map[string]string, recorded bool, err error) {
	c := in.Content
	if text, ok := c.Annotations[wellknown.AnnSnapshotParameters]; ok {
		if err := json.Unmarshal([]byte(text), &parameters); err != nil {
			return nil, false, advise(fmt.Errorf("reading annotation %s: %w", wellknown.AnnSnapshotParameters, err),
				"the annotation of VolumeSnapshotContent %s has to be a JSON object of texts: correct it, or remove it, and the class is read instead", c.Name)
		}
		if parameters == nil {
			parameters = map[string]string{}
		}
		if corrected, ok := correctedParameters(in, parameters); ok {
			return corrected, false, nil
		}
		return parameters, true, nil
	}
	switch {
	case c.Spec.VolumeSnapshotClassName == nil || *c.Spec.VolumeSnapshotClassName == "":
		return nil, false, advise(fmt.Errorf("failed to take snapshot %s without a snapshot class", c.Name), "name one in spec.volumeSnapshotClassName of VolumeSnapshotContent %s", c.Name)
	case ownClass(in) == nil:
		return nil, false, errNoClass(in)
	}
	parameters, err = driverParameters(in.Class)
	return parameters, false, err
}

// correctedParameters are those of a class that was edited, for a snapshot of which nothing has been made or may have been.
func correctedParameters(in ContentInput, recorded map[string]string) (map[string]string, bool) {
	if ownClass(in) == nil || in.Content.DeletionTimestamp != nil || handleOf(in.Content) != "" || isOpen(in) {
		return nil, false
	}
	parameters, err := driverParameters(in.Class)
	return parameters, err == nil && !maps.Equal(parameters, recorded)
}

// ownClass is the content's class; one of another driver that took the name of the class which the snapshot was taken with is none.
func ownClass(in ContentInput) *snapv1.VolumeSnapshotClass {
	if isForeign(in) {
		return nil
	}
	return in.Class
}

// errNoClass is about a content that names a class, but has none of its own driver.
func errNoClass(in ContentInput) error {
	c := in.Content
	if isForeign(in) {
		return advise(fmt.Errorf("VolumeSnapshotClass %s is of driver %q, but VolumeSnapshotContent %s is of driver %q", in.Class.Name, in.Class.Driver, c.Name, c.Spec.Driver),
			"correct the driver of that class, or name one of driver %s in spec.volumeSnapshotClassName of the content; %s", c.Spec.Driver, byItself)
	}
	name := *c.Spec.VolumeSnapshotClassName
	return advise(fmt.Errorf("volumesnapshotclass.snapshot.storage.k8s.io %q not found", name), "create VolumeSnapshotClass %s again; %s", name, byItself)
}

// secretAnnotations gives the secret that the content names. named without a secret means that half of the
// name is missing.
func secretAnnotations(c *snapv1.VolumeSnapshotContent) (named bool, secret *corev1.SecretReference) {
	name, hasName := c.Annotations[wellknown.AnnSnapshotDeletionSecretName]
	namespace, hasNamespace := c.Annotations[wellknown.AnnSnapshotDeletionSecretNamespace]
	switch {
	case !hasName && !hasNamespace:
		return false, nil
	case name == "" || namespace == "":
		return true, nil
	default:
		return true, &corev1.SecretReference{Name: name, Namespace: namespace}
	}
}

func errNoSecretName(c *snapv1.VolumeSnapshotContent) error {
	return advise(fmt.Errorf("cannot retrieve secrets for snapshot content %q, err: secret name or namespace not specified", c.Name),
		"annotations %s and %s of VolumeSnapshotContent %s have to be there both, or none", wellknown.AnnSnapshotDeletionSecretName, wellknown.AnnSnapshotDeletionSecretNamespace, c.Name)
}

// listSecret is the secret of calls that only look, from the class as it is now.
func listSecret(in ContentInput) (*corev1.SecretReference, error) {
	c := in.Content
	if c.Spec.VolumeSnapshotClassName == nil || *c.Spec.VolumeSnapshotClassName == "" {
		return nil, nil
	}
	class := *c.Spec.VolumeSnapshotClassName
	err := errNoClass(in)
	if ownClass(in) != nil {
		var secret *corev1.SecretReference
		if secret, err = params.ResolveSecret(params.SnapshotterList, in.Class.Parameters, params.SnapshotListTokens(c.Name)); err == nil {
			return secret, nil
		}
		err = blameClass(in.Class, err)
	}
	return nil, badClass(c, class, err)
}

func badClass(c *snapv1.VolumeSnapshotContent, class string, err error) error {
	return fmt.Errorf("failed to get snapshot class %s for snapshot content %s: %w", class, c.Name, err)
}

// errNotFound is the answer of a driver that does not know the handle.
func errNotFound(handle string) error {
	return errors.New("can not find snapshot for snapshotID " + handle)
}
