// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"unicode"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestNobodyElseCommandsTheTerminal: whoever may write events in a namespace must not move the cursor, change the title or
// hide lines on the terminal of somebody who asks what is wrong. Catches an explanation that prints texts as they are.
func TestNobodyElseCommandsTheTerminal(t *testing.T) {
	h := kit.New(t)
	claim := kit.Claim("data")
	h.Put(kit.Class(kit.ClassName), claim)
	h.Put(eventOf(h, "e", claim, 0, "Odd", "before\x1b[2J\x1b]0;title\x07after\rover \u202egnp.\u009b1m Größe 한국어"))
	report := explainClaim(t, h, askedDriver(h.Driver.Capabilities))
	text := written(t, report, "text")
	for _, r := range text {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Errorf("%q is in the explanation", r)
		}
	}
	for _, want := range []string{"before", "after", "Größe", "한국어"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
