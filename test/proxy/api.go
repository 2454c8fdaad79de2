// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
)

// API is a proxy before an API server. Clients come with a token of their own, which is passed on unchanged; the
// credentials of the configuration that the proxy was made with are not used.
type API struct {
	rules[Match, Request, Answer]

	upstream  *url.URL
	transport *http.Transport
	identity  identity
	port      *port
	gate      *gate
	server    *http.Server
	journal   *journal[Request]

	// life is over when the proxy is closed. Writes live as long as it, and not as long as the client: a server does
	// not undo what it has begun because somebody hung up.
	life    context.Context
	end     context.CancelFunc
	flight  flight
	serving sync.WaitGroup
	close   sync.Once

	mu      sync.Mutex
	counter *Counter
	client  string
	watches map[*watch]struct{}
	lags    []*lag
}

// NewAPI starts a proxy before the server of a configuration. It runs until Close.
func NewAPI(upstream *rest.Config) (*API, error) {
	target, _, err := rest.DefaultServerUrlFor(upstream)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	// The client's token is the one that counts.
	trust, err := rest.TLSConfigFor(rest.AnonymousClientConfig(upstream))
	if err != nil {
		return nil, fmt.Errorf("reading how to trust the API server: %w", err)
	}
	a := &API{
		upstream: target,
		// Bodies pass as they are, so the transport must not unpack them. A proxy of the environment is not meant.
		transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true, DisableCompression: true, IdleConnTimeout: time.Minute},
		journal:   newJournal[Request](),
		counter:   NewCounter(),
		client:    "client",
		watches:   map[*watch]struct{}{},
	}
	if a.identity, err = newIdentity(time.Now()); err != nil {
		return nil, err
	}
	if a.port, err = reservePort(); err != nil {
		return nil, err
	}
	a.gate = newGate(a.port.address, a.port.listen)
	if err := a.gate.open(); err != nil {
		a.port.release()
		return nil, err
	}
	a.life, a.end = context.WithCancel(context.Background())
	a.serve()
	return a, nil
}

type connKey struct{}

func (a *API) serve() {
	a.server = &http.Server{
		Handler:   a,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{a.identity.certificate}, MinVersion: tls.VersionTLS12},
		// Clients that are killed leave half a handshake behind, which is no news here.
		ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if secured, ok := c.(*tls.Conn); ok {
				c = secured.NetConn()
			}
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	a.serving.Go(func() {
		// It returns when the gate is closed, and says no more than that.
		_ = a.server.ServeTLS(a.gate, "", "")
	})
}

// Close hangs up on everybody and ends the proxy. What hangs goes on and is lost.
func (a *API) Close() error {
	var err error
	a.close.Do(func() {
		a.flight.close()
		a.end()
		err = a.server.Close()
		if gateErr := a.gate.Close(); err == nil && !errors.Is(gateErr, net.ErrClosed) {
			err = gateErr
		}
		a.flight.wait.Wait()
		a.serving.Wait()
		a.transport.CloseIdleConnections()
		a.port.release()
	})
	return err
}

// UseCounter makes the proxy number its effects together with others, as those of a client called so.
func (a *API) UseCounter(counter *Counter, client string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counter, a.client = counter, client
}

// Address is where the proxy listens, also while it is down.
func (a *API) Address() string { return a.port.address.String() }

// Config is a configuration that leads through the proxy, with the token and everything else of the one given.
func (a *API) Config(base *rest.Config) *rest.Config {
	config := rest.CopyConfig(base)
	config.Host = "https://" + a.Address()
	config.Insecure, config.ServerName = false, ""
	config.CAFile, config.CAData = "", a.identity.authority
	return config
}

// Kubeconfig writes a kubeconfig that leads through the proxy with a token, and returns its path.
func (a *API) Kubeconfig(dir, token string) (string, error) {
	file, err := os.CreateTemp(dir, "proxy-*.kubeconfig")
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return "", fmt.Errorf("making a kubeconfig: %w", err)
	}
	return file.Name(), controlplane.WriteKubeconfig(file.Name(), a.Config(&rest.Config{BearerToken: token}))
}

// Down is the death of the API server: connections break, and new ones are refused until Up.
func (a *API) Down() error { return a.gate.shut() }

// Up ends Down, at the same address.
func (a *API) Up() error { return a.gate.open() }

// CutConnections breaks all connections; new ones are welcome at once.
func (a *API) CutConnections() { a.gate.cut() }

// Requests are all requests in the order of their arrival, those that are still being served included.
func (a *API) Requests() []Request { return a.journal.list() }

// ClearRequests forgets the requests so far.
func (a *API) ClearRequests() { a.journal.clear() }

// Await waits for a request that is as wanted, now or before. It is looked at when it arrives and when it is over.
func (a *API) Await(ctx context.Context, isWanted func(Request) bool) (Request, error) {
	return a.journal.await(ctx, isWanted)
}

// Count is how many requests match, with any of the codes if some are given.
func (a *API) Count(match Match, codes ...int) int {
	count := 0
	for _, q := range a.Requests() {
		isCode := len(codes) == 0
		for _, code := range codes {
			isCode = isCode || code == q.Code
		}
		if isCode && match.matches(q) {
			count++
		}
	}
	return count
}

// Writes counts the effects that reached the server and match. Those that it refused for a conflict are counted apart,
// since nothing was written.
func (a *API) Writes(match Match) (sent, conflicts int) {
	for _, q := range a.Requests() {
		switch {
		case !q.IsWrite() || !match.matches(q) || q.Answer == 0:
		case q.Answer == http.StatusConflict:
			conflicts++
		default:
			sent++
		}
	}
	return sent, conflicts
}

func (a *API) counting() (*Counter, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counter, cmp.Or(a.client, "client")
}
