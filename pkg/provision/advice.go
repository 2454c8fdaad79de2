// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/params"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// advised is an error about which its reader can do something. Its text stays what users and their tools
// know; what would help is told behind it.
type advised struct {
	error
	advice string
}

func (a advised) Unwrap() error  { return a.error }
func (a advised) Advice() string { return a.advice }

func advise(err error, format string, args ...any) error {
	return advised{err, fmt.Sprintf(format, args...)}
}

// blameClass advises about parameters of a class, which cannot be changed in place.
func blameClass(in ClaimInput, err error) error {
	return advise(err, "make a StorageClass in place of %q with other parameters, as those of a class cannot be changed", in.Class.Name)
}

// blameSecrets advises about secret templates. Of the claim there is something to say only where a template takes
// annotations from it.
func blameSecrets(in ClaimInput, err error) error {
	class := fmt.Sprintf("StorageClass %q", in.Class.Name)
	where, asksClaim := "look at the secret parameters of "+class, false
	if mistake := new(params.Mistake); errors.As(err, &mistake) {
		where, asksClaim = mistake.Place(class), mistake.TakesAnnotations(in.Class.Parameters)
	}
	if asksClaim {
		return advise(err, "%s; claim %s/%s has to have the annotations that are named there, with values that make a valid name: set or correct them, or make another class in its place, as parameters of a class cannot be changed",
			where, in.Claim.Namespace, in.Claim.Name)
	}
	return advise(err, "%s; make another class in its place, as parameters of a class cannot be changed", where)
}

// LackSecret advises about the secret of a volume that is to be made. The class is nil where nobody knows any more
// which one named it.
func LackSecret(in ClaimInput, err error) error {
	who := "the StorageClass of the claim names it"
	if in.Class != nil {
		who = classNames(in.Class)
	}
	if in.Claim == nil {
		return lackSecret(err, who, "the work goes on by itself, "+nextTry)
	}
	return lackSecret(err, who, fmt.Sprintf("the claim goes on by itself, %s, or at once with %s", nextTry, annotating("pvc -n "+in.Claim.Namespace+" "+in.Claim.Name)))
}

func classNames(class *storagev1.StorageClass) string {
	return fmt.Sprintf("StorageClass %q names it in its %s", class.Name, params.Parameters(params.SecretKeys(params.Provisioner, class.Parameters)))
}

// nextTry is when what waits for a secret or a VolumeAttributesClass is looked at again: no watch tells of secrets, since nobody may
// list them, nor of those classes, which few claims name.
const nextTry = "within --retry-interval-max (5m if not set)"

// annotating is what wakes the work on an object: each change of the object does.
func annotating(object string) string {
	return "kubectl annotate " + object + " --overwrite " + wellknown.AnnRetry + "=$(date +%s)"
}

// lackAbandonedSecret advises about the secret of an open call whose claim is gone, or going.
func lackAbandonedSecret(err error) error {
	return advise(err, "nobody waits for the volume any more: create that secret, and what was begun is brought to its end; if it stays missing for %d minutes, one try is made without it",
		int(SecretPatience.Minutes()))
}

// LackDeletionSecret advises about the secret for the deletion of a volume.
func LackDeletionSecret(volume *corev1.PersistentVolume, err error) error {
	who := fmt.Sprintf("StorageClass %q names it", VolumeClass(volume))
	if isSecretOnRecord(volume) {
		who = fmt.Sprintf("annotations %s and %s of the PersistentVolume name it", wellknown.AnnDeletionSecretName, wellknown.AnnDeletionSecretNamespace)
	}
	goesOn := fmt.Sprintf("the deletion goes on by itself, %s, or at once with %s", nextTry, annotating("pv "+volume.Name))
	if apierrors.IsNotFound(err) {
		goesOn += fmt.Sprintf("; if it stays missing for %d minutes, one try is made without it", int(SecretPatience.Minutes()))
	}
	return lackSecret(err, who, goesOn)
}

func lackSecret(err error, who, goesOn string) error {
	switch {
	case apierrors.IsNotFound(err):
		return advise(err, "%s: create that secret, and %s", who, goesOn)
	case apierrors.IsForbidden(err):
		return advise(err, "%s, and %s", wellknown.GrantRight(wellknown.ComponentSecrets, manifest, wellknown.AccountIn(err)), goesOn)
	}
	return err
}

// LackRight advises about a right that the API server has refused to this process. A webhook that refuses says itself what it wants.
func LackRight(err error) error {
	account := wellknown.AccountIn(err)
	if !apierrors.IsForbidden(err) || account == "" {
		return err
	}
	return advise(err, "%s, and it goes on by itself, %s", wellknown.GrantRight("", manifest, account), nextTry)
}

// manifest has all rights that the work takes.
const manifest = "deploy/provisioner/rbac.yaml"

// blameDriver advises about what a driver cannot do.
func blameDriver(c Config, err error) error {
	return advise(err, "driver %q has to be able to, or the claim has to be of a class of another driver", c.Driver)
}

// newClaim begins the advice about fields that cannot be changed in a claim that exists.
const newClaim = "delete this claim and make one that "

func blameAttributes(in ClaimInput, err error) error {
	return advise(err, "see that VolumeAttributesClass %q exists and is of driver %q, and the claim goes on by itself, %s, or at once with %s; or %snames another",
		*in.Claim.Spec.VolumeAttributesClassName, in.Driver, nextTry, annotating("pvc -n "+in.Claim.Namespace+" "+in.Claim.Name), newClaim)
}

func blameMode(in ClaimInput, content string, err error) error {
	return advise(err, `who may change VolumeSnapshotContents can allow it by the annotation %s: "true" on %s; otherwise %shas volumeMode %s`,
		wellknown.AnnAllowVolumeModeChange, content, newClaim, *in.Source.Content.Spec.SourceVolumeMode)
}
