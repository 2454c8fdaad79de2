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
	if !IsVague(New(CreateVolume, status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"))) {
		t.Error("an answer that is too large says nothing, and nothing runs any more: it must not be repeated for ever for nobody")
	}
	if IsVague(errors.New("no answer")) || IsVague(nil) {
		t.Error("what the driver did not say is not vague")
	}
}

func TestIsEvasive(t *testing.T) {
	evasive := map[codes.Code]bool{
		codes.Internal: true, codes.Unknown: true, codes.PermissionDenied: true, codes.Unauthenticated: true, codes.ResourceExhausted: true,
		codes.AlreadyExists: true,
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		if got := IsEvasive(New(CreateSnapshot, status.Error(code, ""))); got != evasive[code] {
			t.Errorf("%v: %v", code, got)
		}
	}
	if IsEvasive(errors.New("no answer")) || IsEvasive(nil) {
		t.Error("what the driver did not say is not evasive")
	}
}

// TestMayRun: which answers leave it open whether the driver is still at work.
func TestMayRun(t *testing.T) {
	running := map[codes.Code]bool{codes.Canceled: true, codes.DeadlineExceeded: true, codes.Unavailable: true, codes.Aborted: true}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		for _, op := range []Operation{CreateVolume, DeleteVolume} {
			if got := MayRun(New(op, status.Error(code, ""))); got != running[code] {
				t.Errorf("%s, %v: %v", op, code, got)
			}
		}
	}
	if !MayRun(New(DeleteVolume, status.Error(codes.ResourceExhausted, "stream terminated by RST_STREAM with error code: ENHANCE_YOUR_CALM"))) {
		t.Error("a stream that was cut says nothing about the work")
	}
	if MayRun(New(DeleteVolume, status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"))) {
		t.Error("there was an answer")
	}
	if !MayRun(New(DeleteVolume, status.Error(codes.Code(99), ""))) || MayRun(errors.New("never sent")) || MayRun(nil) {
		t.Error("an unknown code may be anything, and what was never sent does not run")
	}
}
