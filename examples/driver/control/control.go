// SPDX-License-Identifier: Apache-2.0

// Package control owns the socket through which a test scripts the driver and
// looks into it: HTTP with JSON over a unix socket, and the Go client of it.
//
// It must not know what rules do, nor how storage works; it only carries.
//
// It stands beside the walk of a CSI call: requests come from tests, go to the
// script, the log or the backend, and return at once.
package control

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
	"github.com/csi-tandem/csi-tandem/examples/driver/script"
)

// Inventory is what the driver stores.
type Inventory struct {
	Volumes   []backend.Volume   `json:"volumes"`
	Snapshots []backend.Snapshot `json:"snapshots"`
}

// Parts are what the socket gives access to.
type Parts struct {
	Backend *backend.Backend
	Script  *script.Script
	Log     *script.Log
	// Crash ends the process at once.
	Crash func()
}

// maximumBody is far above any rule; more is a mistake.
const maximumBody = 1 << 20

// New makes the HTTP side of the socket.
func New(p Parts) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rules", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, p.Script.Rules(), nil)
	})
	mux.HandleFunc("POST /rules", func(w http.ResponseWriter, r *http.Request) {
		var rule script.Rule
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maximumBody))
		d.DisallowUnknownFields()
		err := d.Decode(&rule)
		if err == nil {
			rule.ID, err = p.Script.Add(rule)
		}
		answer(w, rule, err)
	})
	mux.HandleFunc("DELETE /rules", func(w http.ResponseWriter, _ *http.Request) {
		p.Script.Reset()
		answer(w, struct{}{}, nil)
	})
	mux.HandleFunc("DELETE /rules/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, struct{}{}, p.Script.Release(r.PathValue("id")))
	})
	mux.HandleFunc("GET /calls", func(w http.ResponseWriter, r *http.Request) {
		answer(w, p.Log.Calls(r.URL.Query().Get("method")), nil)
	})
	mux.HandleFunc("DELETE /calls", func(w http.ResponseWriter, _ *http.Request) {
		p.Log.Clear()
		answer(w, struct{}{}, nil)
	})
	mux.HandleFunc("GET /inventory", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, Inventory{Volumes: p.Backend.Volumes(), Snapshots: p.Backend.Snapshots()}, nil)
	})
	mux.HandleFunc("DELETE /inventory", func(w http.ResponseWriter, r *http.Request) {
		answer(w, struct{}{}, p.Backend.Forget(r.URL.Query().Get("object")))
	})
	mux.HandleFunc("POST /crash", func(http.ResponseWriter, *http.Request) {
		p.Crash()
	})
	return mux
}

// NewServer wraps the HTTP side with limits for clients that misbehave.
func NewServer(p Parts) *http.Server {
	return &http.Server{Handler: New(p), ReadHeaderTimeout: 10 * time.Second}
}

func answer(w http.ResponseWriter, value any, err error) {
	code := http.StatusOK
	if err != nil {
		code, value = http.StatusBadRequest, map[string]string{"error": err.Error()}
		if errors.Is(err, backend.ErrNotFound) {
			code = http.StatusNotFound
		}
	}
	content, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// A client that does not wait for its answer does not need it.
	_, _ = w.Write(append(content, '\n'))
}
