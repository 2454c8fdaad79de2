// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/params"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// buildCreate makes the request that takes the snapshot. It depends on nothing that changes between tries,
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
	if in.Options.ExtraMetadata {
		ref := c.Spec.VolumeSnapshotRef
		parameters[wellknown.ParamVolumeSnapshotName] = ref.Name
		parameters[wellknown.ParamVolumeSnapshotNamespace] = ref.Namespace
		parameters[wellknown.ParamVolumeSnapshotContent] = c.Name
	}
	create.Request = &csi.CreateSnapshotRequest{
		SourceVolumeId: *c.Spec.Source.VolumeHandle, Name: nameAtDriver(in), Parameters: parameters,
	}
	return create, nil
}

// isClassGivenUp tells that a content which is leaving has waited long enough for the class that an open
// create was made with. The class may be gone for good, and then nobody could ever settle that create.
func isClassGivenUp(in ContentInput) bool {
	since := in.Attempt.LeavingSince
	return in.Content.DeletionTimestamp != nil && !since.IsZero() && in.Now.Sub(since) >= classPatience
}

// isGuess tells that a create is sent without knowing the parameters of the one that it repeats.
func isGuess(in ContentInput) bool {
	_, _, err := parametersOf(in)
	return err != nil && isClassGivenUp(in)
}

// nameAtDriver depends on the snapshot's UID alone, so it survives even a content that is made anew.
func nameAtDriver(in ContentInput) string {
	return wellknown.Name(in.Options.NamePrefix, string(in.Content.Spec.VolumeSnapshotRef.UID), in.Options.NameLength)
}

// parametersOf gives the driver's parameters: those on record, else those of the class.
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
		return parameters, true, nil
	}
	switch {
	case c.Spec.VolumeSnapshotClassName == nil || *c.Spec.VolumeSnapshotClassName == "":
		return nil, false, advise(fmt.Errorf("failed to take snapshot %s without a snapshot class", c.Name), "name one in spec.volumeSnapshotClassName of VolumeSnapshotContent %s", c.Name)
	case in.Class == nil:
		return nil, false, errNoClass(*c.Spec.VolumeSnapshotClassName)
	}
	parameters, err = driverParameters(in.Class)
	return parameters, false, err
}

func errNoClass(name string) error {
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
	err := errNoClass(class)
	if in.Class != nil {
		var secret *corev1.SecretReference
		if secret, err = params.ResolveSecret(params.SnapshotterList, in.Class.Parameters, params.SnapshotListTokens(c.Name)); err == nil {
			return secret, nil
		}
		err = blameClass(in.Class, err)
	}
	return nil, fmt.Errorf("failed to get snapshot class %s for snapshot content %s: %w", class, c.Name, err)
}

// errNotFound is the answer of a driver that does not know the handle.
func errNotFound(handle string) error {
	return errors.New("can not find snapshot for snapshotID " + handle)
}
