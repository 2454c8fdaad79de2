// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestPaths(t *testing.T) {
	for _, c := range []struct {
		name    string
		options HTTPOptions
		elect   bool
		there   string
		missing string
	}{
		{"plain", HTTPOptions{Endpoint: "x", MetricsPath: "/metrics"}, false, "/metrics /healthz", "/healthz/leader-election /debug/pprof/ /"},
		{"everything", HTTPOptions{Endpoint: "x", MetricsPath: "/m", Pprof: true}, true, "/m /healthz /healthz/leader-election /debug/pprof/ /debug/pprof/cmdline /debug/pprof/symbol", "/metrics"},
		{"the deprecated address", HTTPOptions{MetricsAddress: "x", MetricsPath: "/metrics"}, true, "/metrics /healthz", "/healthz/leader-election"},
	} {
		b := conceive(t, func(p *Program) {
			p.Options.HTTP = c.options
			p.Options.Election.Enabled = c.elect
		})
		for path := range strings.FieldsSeq(c.there) {
			if code, _ := b.fetch(path); code != http.StatusOK {
				t.Errorf("%s: %s answers %d", c.name, path, code)
			}
		}
		for path := range strings.FieldsSeq(c.missing) {
			if code, _ := b.fetch(path); code != http.StatusNotFound {
				t.Errorf("%s: %s answers %d", c.name, path, code)
			}
		}
	}
}

func TestMetrics(t *testing.T) {
	b := elect(t, nil)
	b.Setup = func(_ context.Context, e *Env) ([]Runnable, error) {
		rooms := prometheus.NewCounter(prometheus.CounterOpts{Name: "room_lives_total"})
		e.Registry.MustRegister(rooms) // panics when a second term finds the first one's
		rooms.Inc()
		return []Runnable{b.worker("room", "", e.Claims())}, nil
	}
	b.driver.serve(t, b.socket)
	b.begin()
	b.untilJournal("room works")
	rob(b, "somebody")
	b.untilJournal("room works, room stops")
	rob(b, "")
	b.untilJournal("room works, room stops, room works")
	_, text := b.fetch("/metrics")
	for _, want := range []string{
		`csi_sidecar_operations_seconds_bucket{driver_name="unknown-driver",grpc_status_code="OK",method_name="/csi.v1.Identity/Probe",le="0.1"}`,
		`csi_sidecar_operations_seconds_bucket{driver_name="d.example",grpc_status_code="OK",method_name="/csi.v1.Controller/ControllerGetCapabilities",le="600"}`,
		`leader_election_master_status{name="d-example"} 1`,
		"room_lives_total 1",
		"process_start_time_seconds", "go_goroutines", "promhttp_metric_handler_requests_total",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestEndpoint(t *testing.T) {
	b := conceive(t, func(p *Program) { p.Options.HTTP.Endpoint = "127.0.0.1:0" })
	if err := b.listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	address := b.listener.Addr().String()

	taken := conceive(t, func(p *Program) { p.Options.HTTP.Endpoint = address })
	if err := taken.run(t.Context()); taken.exit(err) != exitFatal || !strings.Contains(err.Error(), "--http-endpoint="+address) {
		t.Errorf("a taken address ends with %v", err)
	}
	_ = b.listener.Close()

	// The endpoint is there before the driver is.
	b.Options.HTTP.Endpoint = address
	b.begin()
	until(t, "an answer over HTTP", func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "GET /readyz HTTP/1.0\r\n\r\n")
		answer, _ := io.ReadAll(conn)
		return strings.Contains(string(answer), "503 Service Unavailable") && strings.Contains(string(answer), "not ok: driver")
	})
	if err := b.finish(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("ended with %v", err)
	}
}
