// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reason is why there is no requirement.
type Reason int

// The reasons. The first three are about the selected node, and another node may do.
const (
	// CSINodeMissing: the CSINode of the selected node does not exist, so the node is going or gone.
	CSINodeMissing Reason = iota + 1
	// NodeMissing: the selected Node does not exist although its CSINode lingers.
	NodeMissing
	// NotAllowed: the selected node is outside of allowedTopologies.
	NotAllowed
	// KeysMissing: the driver does not run on the selected node yet, or announces no keys there.
	KeysMissing
	// LabelsMissing: the selected node lacks labels that the driver announces.
	LabelsMissing
	// NothingKnown: no node of the cluster has what is needed.
	NothingKnown
	// TooMany: allowedTopologies stands for more segments than can be handled.
	TooMany
)

// Error is the answer when there is no requirement.
type Error struct {
	Reason Reason
	text   string
	// advice is what would help in this case, empty where it is what helps in all cases of the reason.
	advice string
}

func (e *Error) Error() string { return e.text }

// Advice is what would help, for those who can do something about it.
func (e *Error) Advice() string { return cmp.Or(e.advice, advice[e.Reason]) }

var advice = map[Reason]string{
	CSINodeMissing: "the scheduler is asked to choose another node",
	NodeMissing:    "the scheduler is asked to choose another node",
	NotAllowed:     "let the pod run on nodes of these segments only, or add the segment of the node to allowedTopologies of the class, which can be edited in place",
	KeysMissing:    "look whether the driver runs and is registered on that node; the claim goes on by itself when it is",
	LabelsMissing:  "look whether the driver on that node is up to date, or set the labels on the node; the claim goes on by itself then",
	NothingKnown:   "look whether the driver runs on any node and its nodes have their labels; the claim goes on by itself then",
	TooMany:        "use fewer values in allowedTopologies of the class, which can be edited in place",
}

// saying are parts of the texts of errors, one for each.
var saying = []string{
	"of the selected node not found", "no topology key found for node ", " does not match topology keys from CSINode ", " is not in allowed topologies: ",
	" is not in requisite: ", "no available topology found: ", " were not found on any nodes", "allowedTopologies of the class stands for more than ",
}

// IsTold tells whether a message has an error of a requirement in it. Whoever tells one has a driver for which places matter.
func IsTold(message string) bool {
	return slices.ContainsFunc(saying, func(part string) bool { return strings.Contains(message, part) })
}

// IsReschedule tells that the selected node cannot be served and that another one may: the scheduler
// should choose again. All other errors heal on the same node, or concern no node at all.
func IsReschedule(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Reason == CSINodeMissing || e.Reason == NodeMissing || e.Reason == NotAllowed
}

func failed(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, text: fmt.Sprintf(format, args...)}
}

// listed bounds a list in a message: events hold one KiB, and a cluster may have thousands of segments.
const listed = 10

func list(segments []Segment) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, segment := range segments {
		if i == listed {
			fmt.Fprintf(&b, " and %d more", len(segments)-listed)
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(segment.String())
	}
	b.WriteByte(']')
	return b.String()
}

// split divides keys into the labels that a node has and the keys that it lacks.
func split(keys []string, labels map[string]string) (present map[string]string, missing []string) {
	present = maps.Clone(labels)
	maps.DeleteFunc(present, func(key, _ string) bool { return !slices.Contains(keys, key) })
	for _, key := range keys {
		if _, ok := present[key]; !ok {
			missing = append(missing, key)
		}
	}
	return present, missing
}
