// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capacity"
)

// group is the classes for which the driver is asked the same.
type group struct {
	parameters map[string]string
	classes    []string
}

// table is the published classes, by group and by name. It is made anew when a class changes, and never
// changed.
type table struct {
	groups  map[string]group
	groupOf map[string]string
}

func newTable(rules capacity.Rules, classes []*storagev1.StorageClass) table {
	t := table{groups: map[string]group{}, groupOf: map[string]string{}}
	for _, class := range classes {
		if !rules.IsPublished(class) {
			continue
		}
		parameters := capacity.Parameters(class)
		id := capacity.GroupOf(parameters)
		t.groupOf[class.Name] = id
		g := t.groups[id]
		g.parameters, g.classes = parameters, append(g.classes, class.Name)
		t.groups[id] = g
	}
	for _, g := range t.groups {
		slices.Sort(g.classes)
	}
	return t
}
