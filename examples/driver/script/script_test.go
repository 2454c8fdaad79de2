// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

func clock() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestRulesThatMakeNoSense(t *testing.T) {
	for _, r := range []Rule{
		{},
		{Action: "explode"},
		{Action: Fail},
		{Action: Fail, Code: 99},
		{Action: Fail, Code: codes.Internal, Method: "CreateVolumes"},
		{Action: Fail, Code: codes.Internal, Times: -1},
		{Action: Lag},
		{Action: Limit},
		{Action: Work, Parallel: 1},
		{Action: Work, Duration: time.Second},
		{Action: Distort, Distortion: "ugly"},
	} {
		if id, err := New(clock, nil).Add(r); err == nil {
			t.Errorf("%+v was accepted as %s", r, id)
		}
	}
}

func TestRulesMatchOnWhatACallIsAbout(t *testing.T) {
	nameOf := func(id string) string { return map[string]string{"id1": "pvc-1"}[id] }
	for _, tt := range []struct {
		method string
		req    any
		match  string
		want   bool
	}{
		{"Controller/CreateVolume", &csi.CreateVolumeRequest{Name: "pvc-1"}, "pvc-1", true},
		{"Controller/CreateVolume", &csi.CreateVolumeRequest{Name: "pvc-2"}, "pvc-1", false},
		{"Controller/DeleteVolume", &csi.DeleteVolumeRequest{VolumeId: "id1"}, "pvc-1", true},
		{"Controller/DeleteVolume", &csi.DeleteVolumeRequest{VolumeId: "id1"}, "id1", true},
		{"Controller/CreateSnapshot", &csi.CreateSnapshotRequest{Name: "snap", SourceVolumeId: "id1"}, "pvc-1", true},
		{"Controller/GetCapacity", &csi.GetCapacityRequest{
			AccessibleTopology: &csi.Topology{Segments: map[string]string{"zone": "a"}}}, "zone=a", true},
		{"Identity/Probe", &csi.ProbeRequest{}, "", false},
		{"Node/NodeGetInfo", &csi.NodeGetInfoRequest{}, "", false},
	} {
		s := New(clock, nil)
		if _, err := s.Add(Rule{Action: Fail, Code: codes.Internal, Match: tt.match}); err != nil {
			t.Fatal(err)
		}
		c := describe("/csi.v1."+tt.method, tt.req, nameOf)
		if got := len(s.take(c, true, Fail)) == 1; got != tt.want {
			t.Errorf("%s about %q matches %q: %v, want %v", tt.method, c.subjects, tt.match, got, tt.want)
		}
	}
}

func TestHitsAreCounted(t *testing.T) {
	s := New(clock, nil)
	if _, err := s.Add(Rule{Action: Fail, Code: codes.Internal, Skip: 1, Times: 2}); err != nil {
		t.Fatal(err)
	}
	var got []bool
	for range 5 {
		got = append(got, len(s.take(call{service: "Controller", method: "CreateVolume"}, true, Fail)) == 1)
	}
	if want := "[false true true false false]"; fmt.Sprint(got) != want {
		t.Errorf("affected: %v, want %s", got, want)
	}
	if rules := s.Rules(); rules[0].Hits != 2 {
		t.Errorf("%d hits, want 2", rules[0].Hits)
	}
	if s.Release("r7") == nil {
		t.Error("a rule that does not exist was released")
	}
}

func TestLogKeepsTheLatest(t *testing.T) {
	l := NewLog(clock, 2)
	for range 9 {
		l.begin(&Call{Method: "Probe"})
	}
	calls := l.Calls("Probe")
	if len(calls) < 2 || len(calls) > 4 || calls[len(calls)-1].Number != 9 {
		t.Errorf("kept %+v", calls)
	}
	if got := l.Calls("CreateVolume"); len(got) > 0 {
		t.Errorf("other methods: %+v", got)
	}
}

func TestRedactLeavesTheRequestAlone(t *testing.T) {
	req := &csi.CreateVolumeRequest{Name: "v", Secrets: map[string]string{"user": "u", "password": "p455"}}
	got := string(Redact(req))
	if strings.Contains(got, "p455") || !strings.Contains(got, Hash("p455")) || !strings.Contains(got, "password") {
		t.Errorf("redacted to %s", got)
	}
	if req.Secrets["password"] != "p455" {
		t.Errorf("the request itself was changed: %v", req)
	}
	if got := string(Redact("no message")); got != "null" {
		t.Errorf("got %s", got)
	}
}
