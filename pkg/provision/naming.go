// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Tokens of a template for volume names.
const (
	tokenNamespace = "{namespace}"
	tokenName      = "{name}"
	tokenUID       = "{uid}"
)

// maxVolumeName is how long the CSI spec lets a string be. It is less than what a PersistentVolume may be
// called, and both have the same name.
const maxVolumeName = 128

const (
	// uidLength is that of the UIDs that API servers give.
	uidLength = 36
	// cutHash is how many digits tell names apart that begin alike, where they are cut.
	cutHash = 8
	// shortestCut keeps one character beside the dash and the digits.
	shortestCut = cutHash + 2
)

var anyToken = regexp.MustCompile(`\{[^{}]*\}`)

// CheckNameTemplate refuses a template that could give two claims the same name, a name that no
// PersistentVolume may have, or one that is too long for a driver.
func CheckNameTemplate(template string) error {
	for _, token := range anyToken.FindAllString(template, -1) {
		if token != tokenNamespace && token != tokenName && token != tokenUID {
			return fmt.Errorf("token %s is not known: use {namespace}, {name} and {uid}", token)
		}
	}
	if !strings.Contains(template, tokenUID) {
		return errors.New("it has to contain {uid}: two claims of the same name, one after the other, would get the same volume")
	}
	sample := strings.NewReplacer(tokenNamespace, "a", tokenName, "a", tokenUID, "a").Replace(template)
	if wrong := validation.IsDNS1123Subdomain(sample); len(wrong) > 0 {
		return fmt.Errorf("it gives names that no PersistentVolume may have: %s", strings.Join(wrong, "; "))
	}
	cuts := strings.Count(template, tokenNamespace) + strings.Count(template, tokenName)
	uids := strings.Count(template, tokenUID)
	if least := len(anyToken.ReplaceAllString(template, "")) + cuts*shortestCut + uids*uidLength; least > maxVolumeName {
		return fmt.Errorf("it gives names of %d bytes and more, and CSI allows %d", least, maxVolumeName)
	}
	return nil
}

// volumeName is the name of the volume of a claim, for the driver and for Kubernetes. It depends on nothing
// that can change while the claim lives, so that a repeated request is recognised by the driver.
func (o Options) volumeName(namespace, name string, uid types.UID) string {
	if o.NameTemplate == "" {
		return wellknown.Name(o.NamePrefix, string(uid), o.NameLength)
	}
	for limit := maxVolumeName; ; limit-- {
		filled := strings.NewReplacer(tokenNamespace, cutTo(limit, namespace), tokenName, cutTo(limit, name), tokenUID, string(uid)).Replace(o.NameTemplate)
		if len(filled) <= maxVolumeName || limit == shortestCut {
			return filled
		}
	}
}

// cutTo shortens what is for people only. The UID, which makes the name unique, is never cut; the digits let
// people tell apart what begins alike.
func cutTo(limit int, value string) string {
	if len(value) <= limit {
		return value
	}
	h := fnv.New32a()
	h.Write([]byte(value))
	return fmt.Sprintf("%s-%0*x", strings.TrimRight(value[:limit-cutHash-1], "-."), cutHash, h.Sum32())
}

// VolumeNames are the names under which the claim may have a volume already: the one under default flags,
// and the one that its flags give, in case the flags were changed meanwhile.
func VolumeNames(options Options, claim *corev1.ObjectReference) []string {
	names := []string{wellknown.VolumeNameFromUID(string(claim.UID))}
	if own := options.volumeName(claim.Namespace, claim.Name, claim.UID); own != names[0] {
		names = append(names, own)
	}
	return names
}
