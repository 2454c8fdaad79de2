// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
	"github.com/csi-tandem/csi-tandem/examples/driver/script"
)

func TestRequestsByHand(t *testing.T) {
	b, err := backend.Open(backend.Options{Dir: t.TempDir(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	crashed := false
	h := New(Parts{
		Backend: b, Script: script.New(time.Now, nil), Log: script.NewLog(time.Now, 10),
		Crash: func() { crashed = true },
	})
	for _, tt := range []struct {
		request, body string
		code          int
		has           string
	}{
		{"GET /rules", "", http.StatusOK, "[]"},
		{"POST /rules", `{"action": "fail", "method": "CreateVolume", "code": 13}`, http.StatusOK, `"id":"r1"`},
		{"POST /rules", `{"action": "fail", "code": 13, "tiems": 3}`, http.StatusBadRequest, "tiems"},
		{"POST /rules", `{"action": "fail", "code": 0}`, http.StatusBadRequest, "code"},
		{"POST /rules", `{"action": "` + strings.Repeat("x", maximumBody) + `"}`, http.StatusBadRequest, "too large"},
		{"GET /rules", "", http.StatusOK, `"method":"CreateVolume"`},
		{"DELETE /rules/r9", "", http.StatusBadRequest, "r9"},
		{"DELETE /rules/r1", "", http.StatusOK, "{}"},
		{"GET /calls?method=Probe", "", http.StatusOK, "[]"},
		{"GET /inventory", "", http.StatusOK, `"volumes":[]`},
		{"DELETE /inventory?object=pvc-1", "", http.StatusNotFound, "pvc-1"},
		{"GET /elsewhere", "", http.StatusNotFound, ""},
		{"POST /crash", "", http.StatusOK, ""},
	} {
		method, target, _ := strings.Cut(tt.request, " ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(tt.body)))
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.has) {
			t.Errorf("%s: got %d %s, want %d with %s", tt.request, w.Code, w.Body, tt.code, tt.has)
		}
	}
	if !crashed {
		t.Error("asked to crash, the driver did not")
	}
}

func TestClientWithoutDriver(t *testing.T) {
	if _, err := Dial("unix://"); err == nil {
		t.Error("dialed a socket without a path")
	}
	c, err := Dial(filepath.Join(t.TempDir(), "nobody"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Rules(t.Context()); err == nil {
		t.Error("nobody answered")
	}
	// A driver that is not there was not crashed.
	if err := c.Crash(t.Context()); err == nil {
		t.Error("crashed nobody")
	}
}
