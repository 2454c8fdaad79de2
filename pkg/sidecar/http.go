// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/workqueue" // workqueue_*
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
)

// What the endpoint bears of those who ask it. It needs no login, so they may be anybody who reaches the pod.
const (
	headerTimeout = 10 * time.Second
	// readTimeout is for the whole request: no page takes one with a body.
	readTimeout = 20 * time.Second
	// idleTimeout is longer than scrapes are usually apart.
	idleTimeout = 2 * time.Minute
	// maxHeader is in bytes, to which Go adds 4 KiB.
	maxHeader = 16 << 10
	// maxScrapes is how many collect metrics at once; others are told to come later.
	maxScrapes = 8
	// closeTime is how long a scrape may go on after the end.
	closeTime = time.Second
)

// meters are all metrics of the process. What rooms count begins anew with each of their lives, so that
// they need not know whether there was one before.
type meters struct {
	driver  driver.Options
	process *prometheus.Registry
	rooms   atomic.Pointer[prometheus.Registry]
	// leading and retried have the names and the labels that client-go's elector gives them.
	leading *prometheus.GaugeVec
	retried *prometheus.CounterVec
}

func newMeters(isMigrated func(driver string) bool) *meters {
	m := &meters{driver: driver.Options{Metrics: driver.NewMetrics(isMigrated)}, process: prometheus.NewRegistry()}
	m.rooms.Store(prometheus.NewRegistry())
	m.leading = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "leader_election_master_status", Help: "Whether this process holds the lease of that name: 1 if it does, 0 if it stands by.",
	}, []string{"name"})
	m.retried = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "leader_election_slowpath_total", Help: "Renewals of the lease of that name that took more than one write.",
	}, []string{"name"})
	m.process.MustRegister(m.leading, m.retried)
	return m
}

// Gather implements prometheus.Gatherer.
func (m *meters) Gather() ([]*dto.MetricFamily, error) {
	return prometheus.Gatherers{
		legacyregistry.DefaultGatherer, m.driver.Metrics.GetRegistry(), m.process, m.rooms.Load(),
	}.Gather()
}

// profilesPath is where profiles are, and otherPaths what is served beside the metrics.
const profilesPath = "/debug/pprof/"

var otherPaths = []string{"/healthz", "/healthz/leader-election", "/readyz", statuszPath, flagzPath}

// routes are the paths of the HTTP endpoint.
func (l *life) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(l.Options.HTTP.MetricsPath, hurried(headerTimeout,
		promhttp.InstrumentMetricHandler(l.meters.process, promhttp.HandlerFor(l.meters, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))))
	mux.HandleFunc("/healthz", l.health.serveLeases)
	mux.HandleFunc("/readyz", l.health.serveReady)
	if (l.Options.Election.Enabled || l.mustElect()) && l.Options.HTTP.Endpoint != "" {
		mux.HandleFunc("/healthz/leader-election", l.health.serveLeases)
	}
	if l.Options.HTTP.Pages {
		if l.Options.HTTP.MetricsPath != "/" {
			mux.HandleFunc("GET /{$}", l.servePage)
		}
		mux.HandleFunc("GET "+statuszPath, l.serveStatusz)
		mux.HandleFunc("GET "+flagzPath, l.serveFlagz)
	}
	if l.Options.HTTP.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// hurried bounds how long an answer takes to be read, so that nobody keeps a place among the few by not reading.
func hurried(within time.Duration, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(within))
		h.ServeHTTP(w, r)
	})
}

// listen takes the address before anything else happens, so that one that is taken is told at once.
func (l *life) listen(ctx context.Context) error {
	address := l.Options.HTTP.Address()
	if address == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fatal("%s: cannot listen there: %w; use a free port, at an address that this host has, such as :8080", l.Options.HTTP.given(), err)
	}
	l.listener = listener
	return nil
}

// newServer has no deadline for answers: a profile takes as long as was asked for.
func newServer(routes http.Handler) *http.Server {
	return &http.Server{
		Handler: routes, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
	}
}

// serve answers until the context ends.
func (l *life) serve(ctx context.Context) error {
	if l.listener == nil {
		return nil
	}
	klog.FromContext(ctx).Info("Serving metrics and health", "address", l.listener.Addr().String())
	server := newServer(l.routes())
	stop := context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if server.Shutdown(end) != nil {
			_ = server.Close()
		}
	})
	defer stop()
	if err := server.Serve(l.listener); !errors.Is(err, http.ErrServerClosed) {
		return fatal("serving HTTP: %w", err)
	}
	return nil
}
