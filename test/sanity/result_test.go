// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
)

func TestSkipsAreHeldAgainstClaims(t *testing.T) {
	own := claimSet{"controller:LIST_VOLUMES": true, "node:EXPAND_VOLUME": true}
	for _, tt := range []struct {
		name   string
		claims claimSet
		reason string
		want   string
	}{
		{"not claimed", own, "ControllerExpandVolume not supported", ""},
		{"claimed all the same", own, "NodeExpandVolume not supported", "node:EXPAND_VOLUME"},
		{"a reason that we do not know", own, "tired", "what this spec tests"},
		{"a capability that ours must have", claimSet{}, "ListVolumes not supported", "what this spec tests"},
		{"switched off for everyone", own, pendingReason, ""},
		{"a driver that is not ours", nil, "NodeExpandVolume not supported", ""},
	} {
		if got := tt.claims.covers(tt.reason); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestCount(t *testing.T) {
	spec := func(s types.SpecState, kind types.NodeType) types.SpecReport {
		return types.SpecReport{LeafNodeType: kind, State: s, LeafNodeText: "spec", Failure: types.Failure{Message: "because"}}
	}
	got, reasons := count(types.Report{SpecReports: types.SpecReports{
		spec(types.SpecStatePassed, types.NodeTypeIt),
		spec(types.SpecStatePassed, types.NodeTypeIt),
		spec(types.SpecStateFailed, types.NodeTypeIt),
		spec(types.SpecStatePanicked, types.NodeTypeIt),
		spec(types.SpecStateSkipped, types.NodeTypeIt),
		spec(types.SpecStatePending, types.NodeTypeIt),
		spec(types.SpecStatePassed, types.NodeTypeBeforeSuite),
		spec(types.SpecStateFailed, types.NodeTypeAfterSuite),
	}})
	if want := (result{Ran: 4, Passed: 2, Failed: 3, Skipped: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if reasons["because"] != 1 || reasons["switched off in csi-test: spec"] != 1 {
		t.Errorf("reasons %v", reasons)
	}
}

func TestSkipsWithoutAReasonNameTheSpec(t *testing.T) {
	_, reasons := count(types.Report{SpecReports: types.SpecReports{{
		LeafNodeType: types.NodeTypeIt, State: types.SpecStateSkipped, LeafNodeText: "should work", ContainerHierarchyTexts: []string{"Node", "Stage"},
	}}})
	if reasons["no reason given: Node Stage should work"] != 1 {
		t.Errorf("reasons %v", reasons)
	}
}

func TestGreetNamesWhatIsWrong(t *testing.T) {
	for address, says := range map[string]string{
		"unix://" + filepath.Join(t.TempDir(), "nobody"): "nobody",
		"/run/csi/socket": "unix:///absolute",
		"tcp://x:1":       "unix:///absolute",
	} {
		if _, err := greet(t.Context(), address); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q in it", address, err, says)
		}
	}
}
