// SPDX-License-Identifier: Apache-2.0

// Package params owns the meaning of class parameters: which keys are instructions to the sidecars and
// which belong to the driver, which file system is asked for, and which secret a template points at.
//
// It must not know where classes come from, read a secret, or talk to anybody: it gets a map and gives
// values or an error whose text goes to the user as it is.
//
// In the walks it stands beside provision and snapshot: the request that is sent to the driver and the
// references that are written on volumes and contents are made of what it returns.
package params

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/csi-tandem/csi-tandem/pkg/spelling"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// DriverParameters returns the parameters that the driver may see: all but the reserved keys, which are
// ours. A key with the reserved prefix that nobody knows is an error, because it is a misspelt
// instruction and would otherwise be ignored without a word. The result is never nil and never the map
// that was passed in.
func DriverParameters(parameters map[string]string, reserved []string) (map[string]string, error) {
	forDriver := make(map[string]string, len(parameters))
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		switch {
		case slices.Contains(reserved, key):
		case strings.HasPrefix(key, wellknown.ReservedParameterPrefix):
			return nil, fmt.Errorf("found unknown parameter key %q with reserved namespace %s%s", key, wellknown.ReservedParameterPrefix, meant(key, reserved))
		default:
			forDriver[key] = parameters[key]
		}
	}
	return forDriver, nil
}

// meant names the key that a misspelt one is most like. The prefix, which all have, must not make them alike.
func meant(key string, reserved []string) string {
	words := make([]string, len(reserved))
	for i, word := range reserved {
		words[i] = strings.TrimPrefix(word, wellknown.ReservedParameterPrefix)
	}
	word := spelling.Nearest(strings.TrimPrefix(key, wellknown.ReservedParameterPrefix), words)
	if word == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", wellknown.ReservedParameterPrefix+word)
}

// VolumeKeys are the reserved keys of a StorageClass.
func VolumeKeys() []string {
	keys := []string{wellknown.ParamFSType}
	for _, kind := range []Kind{Default, Provisioner, ControllerPublish, NodeStage, NodePublish, ControllerExpand, NodeExpand, ControllerModify} {
		keys = append(keys, kinds[kind].name, kinds[kind].namespace)
	}
	return keys
}

// SnapshotKeys are the reserved keys of a VolumeSnapshotClass and of a VolumeGroupSnapshotClass.
func SnapshotKeys() []string {
	var keys []string
	for _, kind := range []Kind{Snapshotter, SnapshotterList, GroupSnapshotter, GroupSnapshotterGet} {
		keys = append(keys, kinds[kind].name, kinds[kind].namespace)
	}
	return keys
}

// FSType returns the file system that a StorageClass asks for, or standard when it asks for none. The
// key without prefix is understood in any letter case, as drivers have long documented it in several.
func FSType(parameters map[string]string, standard string) (string, error) {
	var found []string
	for key, value := range parameters {
		if key == wellknown.ParamFSType || strings.EqualFold(key, wellknown.ParamOldFSType) {
			found = append(found, value)
		}
	}
	switch {
	case len(found) > 1:
		return "", fmt.Errorf("fstype specified in parameters with both %q and %q keys", wellknown.ParamOldFSType, wellknown.ParamFSType)
	case len(found) == 1 && found[0] != "":
		return found[0], nil
	default:
		return standard, nil
	}
}

// Deprecations returns one sentence for every parameter of a StorageClass whose name has been replaced.
// They are warnings for the log: the old names work and still reach the driver.
func Deprecations(parameters map[string]string) []string {
	var warnings []string
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		if replacement := replacementOf(key); replacement != "" {
			warnings = append(warnings, fmt.Sprintf("%q is deprecated and will be removed in a future release, please use %q instead", key, replacement))
		}
	}
	return warnings
}

func replacementOf(key string) string {
	switch {
	case key == "":
		// Kinds without old keys hold an empty one.
		return ""
	case strings.EqualFold(key, wellknown.ParamOldFSType):
		return wellknown.ParamFSType
	}
	for _, keys := range kinds {
		switch key {
		case keys.oldName:
			return keys.name
		case keys.oldNamespace:
			return keys.namespace
		}
	}
	return ""
}
