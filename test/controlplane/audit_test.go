// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const auditLines = `{"stage":"ResponseComplete","verb":"create","user":{"username":"admin"},"objectRef":{"resource":"events"},"responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"admin"},"objectRef":{"resource":"events"},"responseStatus":{"code":201}}
{"stage":"RequestReceived","verb":"create","user":{"username":"admin"},"objectRef":{"resource":"events"}}

{"stage":"ResponseComplete","verb":"patch","user":{"username":"system:serviceaccount:a:b"},"objectRef":{"resource":"volumesnapshots","subresource":"status"},"responseStatus":{"code":409}}
{"stage":"Panic","verb":"get","user":{"username":"admin"},"responseStatus":{"code":500}}
`

func TestCountAudit(t *testing.T) {
	unfinished := `{"stage":"ResponseComplete","verb":"cre`
	got, err := countAudit(strings.NewReader(auditLines + unfinished))
	if err != nil {
		t.Fatal(err)
	}
	want := map[AuditKey]int{
		{User: "admin", Verb: "create", Resource: "events", Code: 201}:                                                    2,
		{User: "system:serviceaccount:a:b", Verb: "patch", Resource: "volumesnapshots", Subresource: "status", Code: 409}: 1,
		{User: "admin", Verb: "get", Code: 500}:                                                                           1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestCountAuditNamesTheBrokenLine(t *testing.T) {
	_, err := countAudit(strings.NewReader(auditLines + "not json\n"))
	if err == nil || !strings.Contains(err.Error(), "line 7") {
		t.Errorf("got error %v, want one that names line 7", err)
	}
}

func TestAuditCountsWithoutAFile(t *testing.T) {
	if _, err := AuditCounts(t.TempDir() + "/audit.log"); err == nil {
		t.Error("a missing log was counted")
	}
}
