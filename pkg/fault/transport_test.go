// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestWhatTheTransportSaysIsNoAnswer catches a classification by the code alone: the volume whose answer was too large is
// taken for a full pool, and forgotten. Texts are those of gRPC's libraries for Go and C.
func TestWhatTheTransportSaysIsNoAnswer(t *testing.T) {
	for text, want := range map[string]Class{
		"grpc: received message larger than max (5242896 vs. 4194304)":                       Uncertain,
		"grpc: received message after decompression larger than max 4194304":                 Uncertain,
		"grpc: message after decompression larger than max (5242896 vs. 4194304)":            Uncertain,
		"grpc: received message larger than max length allowed on current machine (9 vs. 8)": Uncertain,
		"trying to send message larger than max (5242896 vs. 4194304)":                       Uncertain,
		"CLIENT: Sent message larger than max (5242896 vs. 4194304)":                         Uncertain,
		"Received message larger than max (5242896 vs. 4194304)":                             Uncertain,
		"grpc: message too large (5242896 bytes)":                                            Uncertain,
		"stream terminated by RST_STREAM with error code: ENHANCE_YOUR_CALM":                 Uncertain,
		"no room":                           Exhausted,
		"volume larger than maximum":        Exhausted,
		"the message of the day: disk full": Exhausted,
	} {
		for code, final := range map[codes.Code]Class{codes.ResourceExhausted: Exhausted, codes.PermissionDenied: Final} {
			wanted := want
			if want != Uncertain {
				wanted = final
			}
			got := New(CreateVolume, status.Error(code, text))
			if got.Class != wanted || got.Code != code || got.Text != text {
				t.Errorf("%v, %q: %v, want %v", code, text, got.Class, wanted)
			}
		}
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"short", 5, "short"}, {"longer", 5, "longe…"}, {"ééé", 5, "éé…"}, {"a\xffb", 5, "a�b"}, {"", 0, ""},
	} {
		if got := Shorten(c.text, c.most); got != c.want {
			t.Errorf("Shorten(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

// TestUnreached: only what never left says nothing of the driver's strength; what broke on the way may have been too much for it.
func TestUnreached(t *testing.T) {
	const refused = `connection error: desc = "transport: Error while dialing: dial unix /csi/csi.sock: connect: connection refused"`
	for _, c := range []struct {
		code codes.Code
		text string
		want bool
	}{
		{codes.Unavailable, refused, true},
		{codes.Internal, refused, false},
		{codes.Unavailable, "error reading from server: EOF", false},
		{codes.Unavailable, "overloaded", false},
	} {
		if got := IsUnreached(New(CreateVolume, status.Error(c.code, c.text))); got != c.want {
			t.Errorf("%v, %q: %v", c.code, c.text, got)
		}
	}
	if IsUnreached(nil) {
		t.Error("no error at all is one")
	}
}
