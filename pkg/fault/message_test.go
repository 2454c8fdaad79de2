// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestIsSameMessage(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"no room", "no room", true},
		{"no room", "no disk", false},
		{"request 41 failed", "request 1042 failed", true},
		{"S64 id 5f0c1a2e-1111-2222-3333-444455556666", "S64 id ffffffff-1111-2222-3333-44445555aaaa", true},
		{"trace 0xdeadbeef01", "trace 0x1f", true},
		{"volume data", "volume face", false},
		{"", "x", false},
	} {
		if got := IsSameMessage(c.a, c.b); got != c.want {
			t.Errorf("IsSameMessage(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

// TestCodeIn: what Error writes is read again, in the quotes of a status too.
func TestCodeIn(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		err := New(CreateVolume, status.Error(code, "it is so"))
		for _, message := range []string{err.Error(), fmt.Sprintf("failed to provision: %v; do this", err), fmt.Sprintf("failed: %q", err.Error())} {
			if got := CodeIn(message); got != code.String() {
				t.Errorf("%q: %q, want %q", message, got, code)
			}
		}
	}
	for _, none := range []string{"", "not found", "rpc error: code = "} {
		if got := CodeIn(none); got != "" {
			t.Errorf("%q: %q", none, got)
		}
	}
}
