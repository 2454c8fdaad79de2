// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// addChoices declares the flags whose defaults leave everything as users of such sidecars know it.
func (o *Options) addChoices(fs *flag.FlagSet) {
	fs.StringVar(&o.NameTemplate, "volume-name-template", o.NameTemplate,
		"names of new volumes, of {namespace}, {name} and {uid} of the claim, such as {namespace}-{name}-{uid}; {uid} has to be in it, and what is too long for CSI is cut elsewhere; empty leaves it to --volume-name-prefix")
	fs.StringVar(&o.RestoreSize, "restore-size", o.RestoreSize,
		"what becomes of a claim that asks for less than its snapshot needs: refuse, or grow to that size")
	fs.StringVar(&o.RestoreTopology, "restore-topology", o.RestoreTopology,
		"for restores and clones without a selected node: ignore where the source's data is, or prefer-source, which offers the driver those segments first")
	for _, list := range o.metadataFlags() {
		fs.Var((*keyList)(list.keys), list.flag,
			fmt.Sprintf("keys of %s, separated by commas, that the driver is told as parameters of CreateVolume, each as %s and the key", list.what, list.prefix))
	}
}

type metadataFlag struct {
	flag, what, prefix string
	keys               *[]string
}

func (o *Options) metadataFlags() []metadataFlag {
	m := &o.Metadata
	return []metadataFlag{
		{"create-parameter-labels", "labels of the claim", wellknown.ParamClaimLabel, &m.ClaimLabels},
		{"create-parameter-annotations", "annotations of the claim", wellknown.ParamClaimAnnotation, &m.ClaimAnnotations},
		{"create-parameter-namespace-labels", "labels of the claim's namespace", wellknown.ParamNamespaceLabel, &m.NamespaceLabels},
		{"create-parameter-namespace-annotations", "annotations of the claim's namespace", wellknown.ParamNamespaceAnnotation, &m.NamespaceAnnotations},
	}
}

// keyList is a flag of keys separated by commas.
type keyList []string

func (l *keyList) String() string { return strings.Join(*l, ",") }

// Set replaces the list: a flag that is given twice counts the last time.
func (l *keyList) Set(text string) error {
	*l = nil
	for key := range strings.SplitSeq(text, ",") {
		if key = strings.TrimSpace(key); key != "" {
			*l = append(*l, key)
		}
	}
	return nil
}

func (o *Options) checkChoices() error {
	errs := []error{
		oneOf("restore-size", o.RestoreSize, provision.RefuseSmaller, provision.GrowSmaller),
		oneOf("restore-topology", o.RestoreTopology, provision.IgnoreSource, provision.PreferSource),
		o.checkTemplate(),
	}
	for _, list := range o.metadataFlags() {
		errs = append(errs, checkKeys(list.flag, *list.keys))
	}
	return errors.Join(errs...)
}

func oneOf(name, value string, known ...string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("--%s=%s: use %s", name, value, strings.Join(known, " or "))
}

func (o *Options) checkTemplate() error {
	defaults := NewOptions()
	switch {
	case o.NameTemplate == "":
		return nil
	case o.NamePrefix != defaults.NamePrefix || o.NameLength != defaults.NameLength:
		return errors.New("--volume-name-template replaces --volume-name-prefix and --volume-name-uuid-length: leave them out")
	}
	if err := provision.CheckNameTemplate(o.NameTemplate); err != nil {
		return fmt.Errorf("--volume-name-template=%s: %w", o.NameTemplate, err)
	}
	return nil
}

func checkKeys(name string, keys []string) error {
	for i, key := range keys {
		if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
			return fmt.Errorf("--%s: %q is no key of labels or annotations: %s", name, key, strings.Join(wrong, "; "))
		}
		if slices.Contains(keys[:i], key) {
			return fmt.Errorf("--%s: %q is there twice", name, key)
		}
	}
	return nil
}
