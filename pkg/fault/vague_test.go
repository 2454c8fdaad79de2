// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestIsVague(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		want := code == codes.Internal || code == codes.Unknown
		if got := IsVague(New(CreateVolume, status.Error(code, ""))); got != want {
			t.Errorf("%v: %v, want %v", code, got, want)
		}
	}
	if IsVague(errors.New("no answer")) || IsVague(nil) {
		t.Error("what the driver did not say is not vague")
	}
}
