// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"path/filepath"
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

func writeAudit(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAuditCounts(t *testing.T) {
	unfinished := `{"stage":"ResponseComplete","verb":"cre`
	got, err := AuditCounts(writeAudit(t, auditLines+unfinished))
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

// A reader that follows the log must neither lose nor repeat a line that was half written when it looked.
func TestReadAuditGoesOn(t *testing.T) {
	first, second := `{"stage":"ResponseComplete","verb":"create","objectRef":{"name":"a"}}`+"\n", `{"stage":"ResponseComplete","verb":"patch","objectRef":{"name":"b"}}`+"\n"
	path := writeAudit(t, first+second[:20])
	var got []string
	each := func(line AuditLine) { got = append(got, line.Verb+" "+line.Object.Name) }
	at, err := ReadAudit(path, 0, each)
	if err != nil || at != int64(len(first)) {
		t.Fatalf("read up to %d, %v; want %d", at, err, len(first))
	}
	if err := os.WriteFile(path, []byte(first+second), 0o600); err != nil {
		t.Fatal(err)
	}
	if at, err = ReadAudit(path, at, each); err != nil || at != int64(len(first+second)) {
		t.Errorf("read up to %d, %v; want %d", at, err, len(first+second))
	}
	if diff := cmp.Diff([]string{"create a", "patch b"}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestReadAuditNamesTheBrokenLine(t *testing.T) {
	_, err := AuditCounts(writeAudit(t, auditLines+"not json\n"))
	if err == nil || !strings.Contains(err.Error(), "line 7") {
		t.Errorf("got error %v, want one that names line 7", err)
	}
}

func TestAuditCountsWithoutAFile(t *testing.T) {
	if _, err := AuditCounts(t.TempDir() + "/audit.log"); err == nil {
		t.Error("a missing log was counted")
	}
}
