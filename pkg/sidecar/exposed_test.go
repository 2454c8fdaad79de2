// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMetricsPath: whatever is written as the path is either refused or served, and takes nothing from what else is there.
// Catches a router that ends the process because of a second pattern or of one that it cannot read.
func TestMetricsPath(t *testing.T) {
	for path, want := range map[string]string{
		"/metrics": "", "/": "", "/m/": "", "/a/b-c_d.e~f": "", "/debug/metrics": "",
		"metrics": "begins with a slash", "": "begins with a slash", "//": "begins with a slash", "/a//b": "begins with a slash", "/a/../b": "begins with a slash",
		"/{x}": "letters", "/{$}": "letters", "/{": "letters", "/a b": "letters", "/é": "letters", "/%2f": "letters", "GET /x": "begins with a slash",
		"/healthz": "something else", "/healthz/": "something else", "/healthz/leader-election": "something else", "/readyz": "something else",
		"/statusz": "something else", "/flagz": "something else", "/debug/pprof/": "something else", "/debug/pprof/cmdline": "something else",
	} {
		options := HTTPOptions{Endpoint: "127.0.0.1:0", MetricsPath: path, Pages: true, Pprof: true}
		err := options.check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", path, err)
		}
		if err != nil {
			continue
		}
		b := conceive(t, func(p *Program) { p.Options.HTTP, p.Options.Election.Enabled = options, true })
		if code, text := b.fetch(path); code != http.StatusOK || !strings.Contains(text, "go_goroutines") {
			t.Errorf("%s answers %d without metrics", path, code)
		}
		for _, other := range append(otherPaths, profilesPath) {
			if code, text := b.fetch(other); code == http.StatusNotFound || strings.Contains(text, "go_goroutines") {
				t.Errorf("with metrics at %s, %s answers %d", path, other, code)
			}
		}
	}
}

// TestNoProfilesUnlessAskedFor: profiles show what is in memory.
func TestNoProfilesUnlessAskedFor(t *testing.T) {
	defaults := NewOptions().HTTP
	if defaults.Address() != "" || defaults.Pprof {
		t.Errorf("by default: %+v", defaults)
	}
	b := conceive(t, func(p *Program) { p.Options.HTTP.Endpoint = "127.0.0.1:0" })
	for _, path := range []string{profilesPath, profilesPath + "heap", profilesPath + "cmdline", profilesPath + "profile", profilesPath + "symbol", profilesPath + "trace"} {
		if code, _ := b.fetch(path); code != http.StatusNotFound {
			t.Errorf("%s answers %d", path, code)
		}
	}
}

// TestTheEndpointBearsLittle: headers without end are refused, and none of the server's patiences is endless.
func TestTheEndpointBearsLittle(t *testing.T) {
	server := newServer(http.NewServeMux())
	for name, patience := range map[string]time.Duration{"headers": server.ReadHeaderTimeout, "requests": server.ReadTimeout, "idle connections": server.IdleTimeout} {
		if patience <= 0 || patience > 5*time.Minute {
			t.Errorf("%s: %v", name, patience)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	defer func() { _ = server.Close(); <-done }()
	for size, want := range map[int]string{1 << 10: "404 Not Found", 1 << 20: "431 Request Header Fields Too Large"} {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(conn, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: "+strings.Repeat("x", size)+"\r\n\r\n")
		}()
		answer := make([]byte, 64)
		n, _ := io.ReadAtLeast(conn, answer, 16)
		if !strings.Contains(string(answer[:n]), want) {
			t.Errorf("a header of %d bytes: %q", size, answer[:n])
		}
		_ = conn.Close()
	}
}

// TestKnock: what is at the path and is no socket is called by its name. Dialing a file says only that nobody listens, and
// people look for a driver that is there.
func TestKnock(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(socket, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		socket: "", "unix://" + socket: "", link: "",
		file: "is no socket: -rw", dir: "is no socket: d", "unix://" + file: "is no socket: -rw", filepath.Join(dir, "absent"): "no such file",
	} {
		err := knock(context.WithoutCancel(t.Context()), path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
