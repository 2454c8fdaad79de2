// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"strings"
	"testing"
)

// TestErrorsInStatusesHaveABound: an API server that repeats in its refusal what was sent, or a webhook, would otherwise fill
// the status of the object, and a status that is too large cannot be written at all. The same long error is written once.
func TestErrorsInStatusesHaveABound(t *testing.T) {
	long := errors.New(strings.Repeat("é", 1<<20))
	snapshot := RejectCreation(in(), long)
	content, _ := failureOf(con().Content, long.Error(), now)
	for name, message := range map[string]string{"snapshot": messageOf(snapshot.Status.Error), "content": messageOf(content.Error)} {
		if len(message) < 4000 || len(message) > 4200 || !strings.HasSuffix(message, "…") {
			t.Errorf("%s: %d bytes, ends in %q", name, len(message), message[len(message)-8:])
		}
	}
	again := in()
	again.Snapshot.Status = snapshot.Status
	if step := RejectCreation(again, long); step.Status != nil {
		t.Error("the same error is written anew to the snapshot")
	}
	known := con()
	known.Content.Status = content
	if status, told := failureOf(known.Content, long.Error(), now); status != nil || told != nil {
		t.Error("the same error is written anew to the content")
	}
}
