// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// passing are fields that differ from one life to the next and mean nothing for it.
var passing = []string{"managedFields", "generation", "selfLink", "uid"}

// What is made up by the clock, or by chance.
var made = []struct {
	text *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^"]*`), "(time)"},
	{regexp.MustCompile(`\b1\d{18}\b`), `"(time)"`},
	// The identity of a provisioner is another with each start.
	{regexp.MustCompile(`"\d{13}-\d+-[^"]*"`), `"(identity)"`},
}

// portrait describes a view so that two of the same kind of life are the same text, whichever crew and whichever names they
// have: what was made up by chance or by the clock has words in its place.
func (c *crew) portrait(v view, round string) (string, error) {
	var uids, ids, lines []string
	meta := func(kind string, o metav1.ObjectMeta, role string) {
		uids = append(uids, string(o.UID), fmt.Sprintf("(uid of %s %s)", kind, role))
	}
	for _, o := range v.claims {
		meta("claim", o.ObjectMeta, o.Name)
	}
	for _, o := range v.snapshots {
		meta("snapshot", o.ObjectMeta, o.Name)
	}
	for _, o := range v.volumes {
		role := "without a claim"
		if o.Spec.ClaimRef != nil {
			role = "of " + o.Spec.ClaimRef.Name
		}
		meta("volume", o.ObjectMeta, role)
	}
	for _, o := range v.contents {
		meta("content", o.ObjectMeta, "of "+o.Spec.VolumeSnapshotRef.Name)
	}
	for _, s := range v.stored.Volumes {
		ids = append(ids, s.ID, "(id of "+s.Name+")")
	}
	for _, s := range v.stored.Snapshots {
		ids = append(ids, s.ID, "(id of "+s.Name+")")
	}
	// In this order, since the words of one have in them what the next replaces.
	replacers := []*strings.Replacer{
		strings.NewReplacer(ids...), strings.NewReplacer(uids...), strings.NewReplacer(c.driver, "(driver)", c.ns, "(ns)", round, "(round)"),
	}
	for kind, objects := range map[string]any{
		"claims": v.claims, "volumes": v.volumes, "snapshots": v.snapshots, "contents": v.contents,
		"stored volumes": v.stored.Volumes, "stored snapshots": v.stored.Snapshots,
	} {
		some, err := describe(kind, objects)
		if err != nil {
			return "", err
		}
		for _, line := range some {
			for _, m := range made {
				line = m.text.ReplaceAllString(line, m.word)
			}
			for _, r := range replacers {
				line = r.Replace(line)
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// describe writes each object on a line, without the passing fields.
func describe(kind string, objects any) ([]string, error) {
	content, err := json.Marshal(objects)
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	if err := json.Unmarshal(content, &all); err != nil {
		return nil, err
	}
	var lines []string
	for _, object := range all {
		if m, ok := object["metadata"].(map[string]any); ok {
			for _, field := range passing {
				delete(m, field)
			}
		}
		withoutVersions(object)
		content, err := json.MarshalIndent(object, "", " ")
		if err != nil {
			return nil, err
		}
		lines = append(lines, kind+" "+string(content))
	}
	return lines, nil
}

// withoutVersions goes into references, which may name the version that they were made from.
func withoutVersions(value any) {
	switch x := value.(type) {
	case map[string]any:
		delete(x, "resourceVersion")
		for _, inner := range x {
			withoutVersions(inner)
		}
	case []any:
		for _, inner := range x {
			withoutVersions(inner)
		}
	}
}
