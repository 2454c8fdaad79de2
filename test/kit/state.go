// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"regexp"
	"slices"
	"strings"
)

// State is everything that the world holds, a line each: objects without what differs from run to run
// (versions, own UIDs, times), then the driver's inventory.
func (h *Harness) State() []string {
	lines := h.API.State()
	for _, line := range h.Driver.Inventory() {
		lines = append(lines, "driver: "+line)
	}
	return lines
}

// State is every object, a line each, without versions, own UIDs and times. Events of the API are left
// out.
func (a *API) State() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	lines := []string{}
	for _, at := range a.sortedKeys("") {
		if at.plural == "events" {
			continue
		}
		obj := clone(a.objects[at])
		meta := metadata(obj)
		for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
			delete(meta, name)
		}
		name := nameOf(at.key)
		if prefix := stringOf(meta, "generateName"); prefix != "" {
			name = strings.Replace(name, stringOf(meta, "name"), prefix+"*", 1)
			meta["name"] = prefix + "*"
		}
		lines = append(lines, at.plural+" "+name+" "+text(withoutTimes(obj)))
	}
	// Names that the server has made up must not decide about the order.
	slices.Sort(lines)
	return lines
}

var moment3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)

// withoutTimes replaces points in time, and the versions inside references.
func withoutTimes(value any) any {
	switch typed := value.(type) {
	case raw:
		for k, v := range typed {
			switch {
			case k == "resourceVersion":
				delete(typed, k)
			case k == "creationTime":
				typed[k] = "TIME"
			case k == "epoch":
				typed[k] = "EPOCH" // of the record of open attempts: it counts the lives
			default:
				typed[k] = withoutTimes(v)
			}
		}
	case []any:
		for i, v := range typed {
			typed[i] = withoutTimes(v)
		}
	case string:
		if moment3339.MatchString(typed) {
			return "TIME"
		}
	}
	return value
}
