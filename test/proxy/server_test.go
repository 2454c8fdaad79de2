// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// server behaves like an API server as far as a proxy can tell: it keeps objects by their paths in the encoding in
// which they came, and streams what is created to watches.
type server struct {
	*httptest.Server

	mu      sync.Mutex
	objects map[string]stored
	// done are the effects that took place, in order.
	done    []string
	seen    []*http.Request
	watches map[chan []byte]string
	stopped chan struct{}
	// slow, if there is one, is told of each write before it is done, and lets it go on by receiving once more.
	slow chan struct{}
}

type stored struct {
	contentType string
	body        []byte
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{objects: map[string]stored{}, watches: map[chan []byte]string{}, stopped: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() {
		close(s.stopped)
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &rest.Config{Host: s.URL, BearerToken: "the-administrator's", TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.seen = append(s.seen, r)
	s.mu.Unlock()
	switch {
	case r.Method == http.MethodGet && isWatch(r.URL.Query()):
		s.watch(w, r)
	case r.Method == http.MethodGet:
		s.get(w, r.URL.Path)
	case s.isPatient(r):
		s.write(w, r, body)
	}
}

// isPatient is false if a slow write was given up by whoever sent it.
func (s *server) isPatient(r *http.Request) bool {
	if s.slow == nil {
		return true
	}
	s.slow <- struct{}{}
	select {
	case s.slow <- struct{}{}:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (s *server) get(w http.ResponseWriter, at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if object, ok := s.objects[at]; ok {
		w.Header().Set("Content-Type", object.contentType)
		_, _ = w.Write(object.body)
		return
	}
	if path.Base(at) != "configmaps" {
		s.refuse(w, http.StatusNotFound)
		return
	}
	items := []json.RawMessage{}
	for key, object := range s.objects {
		if path.Dir(key) == at && json.Valid(object.body) {
			items = append(items, object.body)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "ConfigMapList", "apiVersion": "v1", "items": items})
}

func (s *server) write(w http.ResponseWriter, r *http.Request, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := r.URL.Path
	if r.Method == http.MethodPost {
		at += "/" + nameIn(body, r.Header.Get("Content-Type"))
	}
	object, exists := s.objects[at]
	code := http.StatusOK
	switch {
	case r.Method == http.MethodPost && exists:
		s.refuse(w, http.StatusConflict)
		return
	case r.Method == http.MethodPost:
		object, code = stored{r.Header.Get("Content-Type"), body}, http.StatusCreated
		s.objects[at] = object
		s.tell(r.URL.Path, body)
	case !exists:
		s.refuse(w, http.StatusNotFound)
		return
	case r.Method == http.MethodDelete:
		delete(s.objects, at)
	}
	s.done = append(s.done, r.Method+" "+path.Base(at))
	w.Header().Set("Content-Type", object.contentType)
	w.Header()["X-Several"] = []string{"a", "b"}
	w.WriteHeader(code)
	_, _ = w.Write(object.body)
}

func (s *server) refuse(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, code)
}

func (s *server) tell(at string, object []byte) {
	for events, watched := range s.watches {
		if watched == at {
			events <- fmt.Appendf(nil, `{"type":"ADDED","object":%s}`+"\n", strings.TrimSpace(string(object)))
		}
	}
}

func (s *server) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan []byte, 100)
	s.mu.Lock()
	s.watches[events] = r.URL.Path
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watches, events)
		s.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	controller := http.NewResponseController(w)
	_ = controller.Flush()
	for {
		select {
		case event := <-events:
			if _, err := w.Write(event); err != nil {
				return
			}
			_ = controller.Flush()
		case <-r.Context().Done():
			return
		case <-s.stopped:
			return
		}
	}
}

func (s *server) effects() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.done...)
}

func (s *server) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*http.Request(nil), s.seen...)
}
