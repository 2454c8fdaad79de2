// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"k8s.io/utils/clock"
)

const (
	firstDelay = time.Second
	// mostDelay bounds what a collector can ask for. Longer than the timeout makes no difference.
	mostDelay = time.Hour
	// readAnswer is how much of an answer is read, so that the connection can be used again.
	readAnswer = 64 << 10
)

// sender sends spans by OTLP over HTTP, one batch after the other.
type sender struct {
	settings *settings
	agent    string
	client   *http.Client
	clock    clock.Clock
	complain func(error)
	failing  bool
}

func newSender(s *settings, o Options) (*sender, error) {
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the HTTP transport is not the standard one")
	}
	transport := standard.Clone()
	transport.TLSClientConfig = s.tls
	return &sender{
		settings: s, agent: o.Program + "/" + o.Version, clock: o.Clock, complain: o.Complain,
		client: &http.Client{
			Transport: transport,
			// Headers that log in are not for whoever the collector names.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// send takes its time and then drops what was not taken. That it failed is told once, not with every batch.
func (s *sender) send(ctx context.Context, batch []Record) {
	body, err := s.pack(encode(batch, s.settings.resource, s.agent))
	if err == nil {
		err = s.deliver(ctx, body)
	}
	switch {
	case err != nil && !s.failing:
		s.complain(fmt.Errorf("%w; spans are dropped until it goes again", err))
	case err == nil && s.failing:
		s.complain(nil)
	}
	s.failing = err != nil
}

func (s *sender) pack(body []byte) ([]byte, error) {
	if !s.settings.gzip {
		return body, nil
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("compressing spans: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compressing spans: %w", err)
	}
	return packed.Bytes(), nil
}

// deliver tries until the collector has taken the spans, has refused them, or the timeout is over.
func (s *sender) deliver(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.settings.timeout)
	defer cancel()
	for delay := firstDelay; ; delay *= 2 {
		again, wait, err := s.post(ctx, body)
		if err == nil || !again {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-s.clock.After(max(delay, wait)):
		}
	}
}

// retryable are the answers after which OTLP wants a repeat.
var retryable = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// post sends the spans once. Again tells whether a repeat may help, and wait how long the collector wants to be left alone.
func (s *sender) post(ctx context.Context, body []byte) (again bool, wait time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.settings.url, bytes.NewReader(body))
	if err != nil {
		return false, 0, errors.New("sending spans: the endpoint is no URL")
	}
	request.Header = s.settings.headers.Clone()
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("User-Agent", s.agent)
	if s.settings.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return true, 0, fmt.Errorf("sending spans to %s: %w", place(request.URL), withoutURL(err))
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.CopyN(io.Discard, answer.Body, readAnswer)
	if answer.StatusCode/100 == 2 {
		return false, 0, nil
	}
	if seconds, parseErr := strconv.Atoi(answer.Header.Get("Retry-After")); parseErr == nil && seconds > 0 {
		wait = min(time.Duration(min(seconds, int(mostDelay/time.Second)))*time.Second, mostDelay)
	}
	return slices.Contains(retryable, answer.StatusCode), wait, fmt.Errorf("sending spans to %s: it answers %s", place(request.URL), answer.Status)
}

// place is as much of a collector's URL as may be told: its path and its query hold keys for some.
func place(u *url.URL) string { return u.Scheme + "://" + u.Host }

// withoutURL drops the URL, which the HTTP client repeats.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

func (s *sender) close() { s.client.CloseIdleConnections() }
