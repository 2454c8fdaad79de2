// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestClassifyEveryCode(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		volume, snapshot := Classify(CreateVolume, code), Classify(CreateSnapshot, code)
		wantVolume, wantSnapshot := Final, Final
		switch code {
		case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted, codes.Internal, codes.Unknown:
			wantVolume, wantSnapshot = Uncertain, Uncertain
		case codes.ResourceExhausted:
			wantVolume, wantSnapshot = Exhausted, Uncertain
		case codes.InvalidArgument:
			wantVolume, wantSnapshot = Infeasible, Infeasible
		}
		if volume != wantVolume || snapshot != wantSnapshot {
			t.Errorf("%v: volume %v, snapshot %v; want %v, %v", code, volume, snapshot, wantVolume, wantSnapshot)
		}
	}
	if got := Classify(CreateVolume, codes.Code(99)); got != Uncertain {
		t.Errorf("unknown code: %v", got)
	}
}

func TestNew(t *testing.T) {
	if New(CreateVolume, nil) != nil {
		t.Error("no error must stay no error")
	}
	err := New(CreateVolume, status.Error(codes.ResourceExhausted, "no room"))
	if err.Error() != "rpc error: code = ResourceExhausted desc = no room" || err.Class != Exhausted {
		t.Errorf("got %v (%v)", err, err.Class)
	}
	if plain := New(CreateVolume, errors.New("broken pipe")); plain.Class != Uncertain {
		t.Errorf("an error without a code says nothing, got %v", plain.Class)
	}
	if again := New(DeleteVolume, fmt.Errorf("creating: %w", err)); again != err {
		t.Error("a wrapped failure must not be classified twice")
	}
	if !errors.Is(New(CreateVolume, context.Canceled), context.Canceled) {
		t.Error("the cause is lost")
	}
	for _, text := range []string{strings.Repeat("x", 5000), strings.Repeat("é", 5000), "x" + strings.Repeat("é", 5000), "broken \xff"} {
		if got := New(CreateVolume, errors.New(text)).Text; len(got) > MaxText+4 || !utf8.ValidString(got) {
			t.Errorf("text of %d bytes, valid %v", len(got), utf8.ValidString(got))
		}
	}
}

func TestProvesNothing(t *testing.T) {
	for code, want := range map[codes.Code]bool{
		codes.Internal: true, codes.PermissionDenied: true, codes.Unauthenticated: true, codes.ResourceExhausted: true,
		codes.NotFound: true, codes.FailedPrecondition: true, codes.AlreadyExists: true,
		codes.InvalidArgument: false, codes.OutOfRange: false,
	} {
		if got := ProvesNothing(New(CreateVolume, status.Error(code, ""))); got != want {
			t.Errorf("%v: %v, want %v", code, got, want)
		}
	}
	if ProvesNothing(New(CreateSnapshot, status.Error(codes.NotFound, ""))) {
		t.Error("a snapshot has its source in the request: without it nothing was made")
	}
	if !ProvesNothing(New(CreateSnapshot, status.Error(codes.AlreadyExists, ""))) {
		t.Error("a snapshot of the name may be the one that the earlier call has made")
	}
}

func TestMarks(t *testing.T) {
	err := errors.New("no")
	if IsTerminal(err) || !IsTerminal(fmt.Errorf("x: %w", Terminal(err))) {
		t.Error("terminal mark")
	}
	if after, ok := RetryDelay(fmt.Errorf("x: %w", RetryAfter(err, time.Minute))); !ok || after != time.Minute {
		t.Error("retry mark")
	}
}
