// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"strings"
	"testing"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Who asks for a group of our driver, or waits for the end of one, is told once what would help; nobody else is. Catches a word about
// groups that another driver's sidecars take, or about one that is there, and a group that waits in silence.
func TestBuildGroupNotice(t *testing.T) {
	const ours, theirs = "ours.example.com", "theirs.example.com"
	of := func(driver string, defaults ...string) map[string]GroupClass {
		classes := map[string]GroupClass{"gold": {Driver: driver}}
		for _, d := range defaults {
			classes["default-"+d] = GroupClass{Driver: d, IsDefault: true}
		}
		return classes
	}
	for _, row := range []struct {
		name    string
		group   Group
		driver  string
		classes map[string]GroupClass
		told    string
	}{
		{"our class", Group{Class: "gold"}, ours, of(ours), "team-a/nightly is not taken"},
		{"class of another driver", Group{Class: "gold"}, ours, of(theirs), ""},
		{"no such class yet", Group{Class: "silver"}, ours, of(ours), ""},
		{"for all drivers", Group{Class: "gold"}, "", of(theirs), "team-a/nightly is not taken"},
		{"for all drivers, no class", Group{}, "", nil, "team-a/nightly is not taken"},
		{"taken by another program", Group{Class: "gold", Ready: true}, ours, of(ours), ""},
		{"taken by another program, and leaving", Group{Class: "gold", Ready: true, Leaving: true}, ours, of(ours), "team-a/nightly is not deleted"},
		{"leaving, of another driver", Group{Class: "gold", Leaving: true}, ours, of(theirs), ""},
		{"no class, our default", Group{}, ours, of(theirs, ours), "team-a/nightly is not taken"},
		{"given, our default: its content says whose it is", Group{Given: true}, ours, of(ours, ours), ""},
		{"given, our class", Group{Given: true, Class: "gold"}, ours, of(ours), "team-a/nightly is not taken"},
		{"given, for all drivers", Group{Given: true}, "", nil, "team-a/nightly is not taken"},
		{"no class, no default", Group{}, ours, of(ours), ""},
		{"no class, another's default", Group{}, ours, of(ours, theirs), ""},
		{"no class, two defaults: the driver of its claims decides", Group{}, ours, of(ours, ours, theirs), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.group.Namespace, row.group.Name = "team-a", "nightly"
			told, isNews := BuildGroupNotice(row.group, row.driver, row.classes)
			if isNews != (row.told != "") || !strings.Contains(told.Message, row.told) {
				t.Fatalf("told %v %q, want %q", isNews, told.Message, row.told)
			}
			if isNews && (!told.Warning || told.Reason != wellknown.ReasonGroupSnapshotNotSupported || !strings.Contains(told.Message, "; ")) {
				t.Errorf("%+v is no warning with a remedy", told)
			}
		})
	}
}
