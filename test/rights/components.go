// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Misnamed compares the components that a program names for each resource of which it lacks a right with those that grant it. For all
// that deploy/pair begins without there has to be one, and each that is named has to grant it.
func Misnamed(program Program, told map[string]string) ([]string, error) {
	granted, base, err := grantedBy(program)
	if err != nil {
		return nil, err
	}
	var faults []string
	for resource, dirs := range granted {
		if told[resource] == "" && !base[resource] {
			faults = append(faults, fmt.Sprintf("%s: no message names any of %v", resource, dirs))
		}
	}
	for resource, text := range told {
		for dir := range strings.SplitSeq(text, " or ") {
			if !slices.Contains(granted[resource], dir) {
				faults = append(faults, fmt.Sprintf("%s: %s does not grant it, only %v", resource, dir, granted[resource]))
			}
		}
	}
	return faults, nil
}

// grantedBy are the components that grant a program something of each resource, and the resources of which deploy/pair does.
func grantedBy(program Program) (granted map[string][]string, base map[string]bool, err error) {
	granted, base = map[string][]string{}, map[string]bool{}
	for _, m := range Manifests {
		rows, err := Rows(m.Sets...)
		if err != nil {
			return nil, nil, err
		}
		for _, row := range rows {
			switch dir := path.Dir(m.Path); {
			case row.Program != program:
			case dir == "deploy/pair":
				base[row.Resource] = true
			case strings.HasPrefix(dir, "deploy/components/") && row.Feature != Explain && m.Account == Pair:
				granted[row.Resource] = append(granted[row.Resource], dir)
			}
		}
	}
	return granted, base, nil
}
