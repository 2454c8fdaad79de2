// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"regexp"
	"strings"
)

// counters finds what changes from try to try without telling anything new: request ids, times, counters.
var counters = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b(?:0x)?[0-9a-f]*[0-9][0-9a-f]*\b|[0-9]+`)

// IsSameMessage tells that two errors say the same to a reader. A driver that puts a request id into its
// errors would otherwise cost a write and an event at every try.
func IsSameMessage(a, b string) bool { return a == b || Essence(a) == Essence(b) }

// Essence is what errors that say the same to a reader have in common.
func Essence(message string) string { return counters.ReplaceAllString(message, "#") }

// Sentence is what users are told of an error: what happened, and then what would help, where the error knows it.
func Sentence(err error) string {
	var knows interface{ Advice() string }
	if !errors.As(err, &knows) || knows.Advice() == "" {
		return err.Error()
	}
	return err.Error() + "; " + knows.Advice()
}

// IsFromDriver tells that a message carries the words of a driver, as the text of an Error.
func IsFromDriver(message string) bool { return strings.Contains(message, "rpc error: code = ") }

// answer is how an Error begins.
var answer = regexp.MustCompile(`rpc error: code = (\w+) desc = `)

// CodeIn is the name of the code of the answer that a message carries, empty when it carries none. Events and statuses keep no more of
// an answer than its text.
func CodeIn(message string) string {
	found := answer.FindStringSubmatch(message)
	if found == nil {
		return ""
	}
	return found[1]
}
