// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// Words are what is said about a step.
type Words struct {
	// Does is a sentence about what is done, or waited for.
	Does string
	// Event is the message of the event that comes with the step; empty when there is none.
	Event string
}

// row is a type of step and what is said about it.
type row struct {
	of  reflect.Type
	say func(step any) Words
}

func about[S any](say func(S) Words) row {
	return row{reflect.TypeFor[S](), func(step any) Words {
		s, _ := step.(S)
		return say(s)
	}}
}

// sentences is the one place that has words for steps, for all machines.
var sentences = tableOf(claimRows(), volumeRows(), sourceRows(), snapshotRows(), contentRows())

func tableOf(groups ...[]row) map[reflect.Type]func(any) Words {
	table := map[reflect.Type]func(any) Words{}
	for _, rows := range groups {
		for _, r := range rows {
			table[r.of] = r.say
		}
	}
	return table
}

// Say puts a step of any machine into words.
func Say(step any) Words {
	if say, ok := sentences[reflect.TypeOf(step)]; ok {
		return say(step)
	}
	return Words{Does: fmt.Sprintf("Something for which there are no words here: %T.", step)}
}

func does(format string, args ...any) Words { return Words{Does: fmt.Sprintf(format, args...)} }

// told are the words for a step whose event says all.
func told(before, message string) Words { return Words{Does: before + message, Event: message} }

// advised are the words for a step whose event ends with advice, which has lines of its own in an explanation.
func advised(before, message, advice string) Words {
	return Words{Does: before + strings.TrimSuffix(message, "; "+advice), Event: message}
}

// span is a duration as one says it.
func span(d time.Duration) string {
	if d < time.Second {
		return "a moment"
	}
	return duration.HumanDuration(d)
}

// text is an error's, also of none.
func text(err error) string {
	if err == nil {
		return "no reason is known"
	}
	return err.Error()
}

// said is an error as the event tells it, with what would help.
func said(err error) string {
	if err == nil {
		return text(err)
	}
	return fault.Sentence(err)
}
