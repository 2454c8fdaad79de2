// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// hopHeaders concern one connection and are not passed on.
var hopHeaders = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// ServeHTTP passes one request on, unless something is to go wrong.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !a.flight.enter() {
		panic(http.ErrAbortHandler)
	}
	defer a.flight.leave()
	// A write is read to its end first: half a request of a client that died is none.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	x := &exchange{api: a, w: w, r: r, body: body, request: readRequest(r, body)}
	x.entry = a.journal.add(x.request)
	err = x.run()
	if !x.isWritten {
		x.request.Code = 0
	}
	x.request.Finished = time.Now()
	a.journal.edit(x.entry, func(q *Request) { *q = x.request })
	if err != nil {
		// This is how a handler of net/http breaks off an answer. Only this request's stream is affected.
		panic(http.ErrAbortHandler)
	}
}

// exchange is one request on its way to the server and back.
type exchange struct {
	api       *API
	w         http.ResponseWriter
	r         *http.Request
	body      []byte
	request   Request
	entry     *Request
	isWritten bool
}

// run returns an error if the client is not to get an answer, or not all of it.
func (x *exchange) run() error {
	if done, err := x.suffer(before); done || err != nil {
		return err
	}
	if x.isEffect() {
		return x.runEffect()
	}
	response, err := x.send(x.r.Context())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if x.request.Verb == "watch" && response.StatusCode == http.StatusOK {
		return x.api.stream(x, response)
	}
	if x.api.isPending(x.request, after) {
		// What is to be lost after it was done has to be done first.
		content, err := io.ReadAll(response.Body)
		if err != nil {
			return fmt.Errorf("reading the server's answer: %w", err)
		}
		response.Body = io.NopCloser(bytes.NewReader(content))
	}
	if done, err := x.suffer(after); done || err != nil {
		return err
	}
	return x.answer(response, response.Body)
}

// isEffect leaves out trials, which change nothing.
func (x *exchange) isEffect() bool {
	return x.request.IsWrite() && !x.r.URL.Query().Has("dryRun")
}

func (x *exchange) runEffect() error {
	counter, client := x.api.counting()
	c, _ := x.r.Context().Value(connKey{}).(*conn)
	t, err := counter.begin(x.r.Context(), Effect{
		Client: client, Agent: x.request.Agent, Verb: x.request.Verb, Kind: x.request.kind(), Key: x.request.Key(),
	}, c.isConnected)
	if err != nil {
		return x.abandon(err, "cut before it was sent")
	}
	x.request.Effect = t.effect.Number
	response, content, err := x.do()
	answer := lostAnswer
	if err == nil {
		answer = strconv.Itoa(response.StatusCode)
	}
	if cut := counter.end(t, answer); cut != nil {
		return x.abandon(cut, "cut after it took effect")
	}
	if err != nil {
		return err
	}
	if done, err := x.suffer(after); done || err != nil {
		return err
	}
	return x.answer(response, bytes.NewReader(content))
}

// do sends a write and takes the whole answer, whatever becomes of the client meanwhile.
func (x *exchange) do() (*http.Response, []byte, error) {
	response, err := x.send(x.api.life)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the server's answer: %w", err)
	}
	return response, content, nil
}

// abandon leaves the client without an answer until it gives up.
func (x *exchange) abandon(err error, why string) error {
	if errors.Is(err, errSwallowed) {
		x.request.Faults = append(x.request.Faults, why)
		return silence(x.r.Context())
	}
	return err
}

// suffer lets faults strike; done says that the client has had its answer.
func (x *exchange) suffer(at stage) (done bool, err error) {
	b, err := x.api.suffer(x.r.Context(), x.request, at)
	x.request.Faults = append(x.request.Faults, b.names...)
	switch {
	case err != nil:
		return true, err
	case !b.isAnswered:
		return false, nil
	case b.answer.isLost():
		return true, errSwallowed
	}
	x.isWritten, x.request.Code = true, b.answer.Code
	return true, b.answer.write(x.w, x.r.Method, x.request)
}

func (x *exchange) send(ctx context.Context) (*http.Response, error) {
	out := x.r.Clone(ctx)
	out.URL.Scheme, out.URL.Host = x.api.upstream.Scheme, x.api.upstream.Host
	out.Host, out.RequestURI = "", ""
	out.Body, out.GetBody, out.ContentLength = http.NoBody, nil, 0
	if len(x.body) > 0 {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(x.body)), int64(len(x.body))
		// Lets the transport send it again where the server has certainly not begun, as a client of its own would.
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
	}
	for _, name := range hopHeaders {
		out.Header.Del(name)
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header.Set("User-Agent", "") // Or the transport would put its own.
	}
	response, err := x.api.transport.RoundTrip(out)
	if err != nil {
		return nil, fmt.Errorf("passing a request on: %w", err)
	}
	x.request.Answer = response.StatusCode
	return response, nil
}

// answer passes the server's answer on, piece by piece as it comes.
func (x *exchange) answer(response *http.Response, content io.Reader) error {
	flush := x.begin(response)
	buffer := make([]byte, 32<<10)
	for {
		n, err := content.Read(buffer)
		if n > 0 {
			if _, err := x.w.Write(buffer[:n]); err != nil {
				return errClientGone
			}
			flush()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the server's answer: %w", err)
		}
	}
}

// begin passes the head of an answer on and returns what makes the client see what was written.
func (x *exchange) begin(response *http.Response) (flush func()) {
	head := x.w.Header()
	for name, values := range response.Header {
		head[name] = values
	}
	for _, name := range hopHeaders {
		head.Del(name)
	}
	x.isWritten, x.request.Code = true, response.StatusCode
	x.w.WriteHeader(response.StatusCode)
	controller := http.NewResponseController(x.w)
	return func() {
		// A client that is gone is found out by the next write.
		_ = controller.Flush()
	}
}
