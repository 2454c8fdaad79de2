// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"

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

// Sentence is what users are told of an error: what happened, and then what would help, each once.
func Sentence(err error) string {
	var knows interface{ Advice() string }
	if !errors.As(err, &knows) || knows.Advice() == "" {
		return err.Error()
	}
	return err.Error() + "; " + knows.Advice()
}

// blameClass advises about parameters of a class, which cannot be changed in place.
func blameClass(in ClaimInput, err error) error {
	return advise(err, "make a StorageClass in place of %q with other parameters, as those of a class cannot be changed", in.Class.Name)
}

// blameSecrets advises about secret templates, which take values from the claim.
func blameSecrets(in ClaimInput, err error) error {
	return advise(err, "look at the secret parameters of StorageClass %q and, where they name annotations, at those of claim %s/%s", in.Class.Name, in.Claim.Namespace, in.Claim.Name)
}

// blameDriver advises about what a driver cannot do.
func blameDriver(c Config, err error) error {
	return advise(err, "driver %q has to be able to, or the claim has to be of a class of another driver", c.Driver)
}

// newClaim begins the advice about fields that cannot be changed in a claim that exists.
const newClaim = "delete this claim and make one that "

func blameAttributes(in ClaimInput, err error) error {
	return advise(err, "see that VolumeAttributesClass %q exists and is of driver %q, or %snames another", *in.Claim.Spec.VolumeAttributesClassName, in.Driver, newClaim)
}

func blameMode(in ClaimInput, content string, err error) error {
	return advise(err, `who may change VolumeSnapshotContents can allow it by the annotation %s: "true" on %s; otherwise %shas volumeMode %s`,
		wellknown.AnnAllowVolumeModeChange, content, newClaim, *in.Source.Content.Spec.SourceVolumeMode)
}
