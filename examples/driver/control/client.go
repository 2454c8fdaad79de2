// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/examples/driver/script"
)

// Client talks to the control socket of a driver.
type Client struct {
	http *http.Client
}

// Dial makes a client for the socket at path; unix:// in front is accepted.
// It does not wait for the socket: each request makes its own connection, so
// that a client outlives the restarts of its driver.
func Dial(path string) (*Client, error) {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "unix://"), "unix:")
	if path == "" {
		return nil, errors.New("dialing control socket: no path given")
	}
	dialer := net.Dialer{Timeout: 10 * time.Second}
	return &Client{http: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		},
	}}}, nil
}

// Target says which calls a rule is for.
type Target struct {
	method string
	match  string
	skip   int
	times  int
}

// On aims at all calls of one RPC; an empty method is any of the controller
// service. The rule stays until it is released unless Times is added.
func On(method string) Target { return Target{method: method} }

// About narrows to calls whose name, id or segment contains the text.
func (t Target) About(text string) Target { t.match = text; return t }

// Times limits how many calls are affected.
func (t Target) Times(n int) Target { t.times = n; return t }

// After lets n calls pass first.
func (t Target) After(n int) Target { t.skip = n; return t }

func (t Target) rule(a script.Action) script.Rule {
	return script.Rule{Action: a, Method: t.method, Match: t.match, Skip: t.skip, Times: t.times}
}

// Fail answers with the code and does nothing.
func (c *Client) Fail(ctx context.Context, t Target, code codes.Code) (string, error) {
	r := t.rule(script.Fail)
	r.Code = code
	return c.Add(ctx, r)
}

// CommitThenFail does the work and then answers with the code.
func (c *Client) CommitThenFail(ctx context.Context, t Target, code codes.Code) (string, error) {
	r := t.rule(script.CommitFail)
	r.Code = code
	return c.Add(ctx, r)
}

// Hang holds the calls for the duration, zero being until released. A call
// whose caller gives up meanwhile is not done.
func (c *Client) Hang(ctx context.Context, t Target, d time.Duration) (string, error) {
	r := t.rule(script.Hang)
	r.Duration = d
	return c.Add(ctx, r)
}

// CommitThenHang does the work and then holds the answer.
func (c *Client) CommitThenHang(ctx context.Context, t Target, d time.Duration) (string, error) {
	r := t.rule(script.CommitHang)
	r.Duration = d
	return c.Add(ctx, r)
}

// Lag makes the driver slow: the work is done even if nobody waits for it.
func (c *Client) Lag(ctx context.Context, t Target, d time.Duration) (string, error) {
	r := t.rule(script.Lag)
	r.Duration = d
	return c.Add(ctx, r)
}

// Limit lets at most so many of the calls be at work at a time.
func (c *Client) Limit(ctx context.Context, t Target, parallel int) (string, error) {
	r := t.rule(script.Limit)
	r.Parallel = parallel
	return c.Add(ctx, r)
}

// Work makes each object take that long once, so many objects at a time, even
// if nobody waits for it.
func (c *Client) Work(ctx context.Context, t Target, parallel int, d time.Duration) (string, error) {
	r := t.rule(script.Work)
	r.Parallel, r.Duration = parallel, d
	return c.Add(ctx, r)
}

// Distort spoils the answers.
func (c *Client) Distort(ctx context.Context, t Target, d script.Distortion) (string, error) {
	r := t.rule(script.Distort)
	r.Distortion = d
	return c.Add(ctx, r)
}

// ReadyAfterCalls reports snapshots (whose name or id contains match) as ready
// only at the n-th look at each; zero is not until released.
func (c *Client) ReadyAfterCalls(ctx context.Context, match string, n int) (string, error) {
	return c.Add(ctx, script.Rule{Action: script.Unready, Match: match, Calls: n})
}

// ReadyAfter reports snapshots as ready only when they are so old.
func (c *Client) ReadyAfter(ctx context.Context, match string, d time.Duration) (string, error) {
	return c.Add(ctx, script.Rule{Action: script.Unready, Match: match, Duration: d})
}

// CrashOn ends the process when such a call comes in.
func (c *Client) CrashOn(ctx context.Context, t Target) (string, error) {
	return c.Add(ctx, t.rule(script.Crash))
}

// CommitThenCrash ends the process when the work of such a call is done and
// its answer is not sent.
func (c *Client) CommitThenCrash(ctx context.Context, t Target) (string, error) {
	return c.Add(ctx, t.rule(script.CommitCrash))
}

// Add appends any rule and returns its id.
func (c *Client) Add(ctx context.Context, r script.Rule) (string, error) {
	var added script.Rule
	if err := c.do(ctx, http.MethodPost, "/rules", r, &added); err != nil {
		return "", err
	}
	return added.ID, nil
}

// Release takes a rule out and lets go of the calls that it holds.
func (c *Client) Release(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/rules/"+url.PathEscape(id), nil, nil)
}

// Rules lists the script.
func (c *Client) Rules(ctx context.Context) ([]script.Rule, error) {
	var all []script.Rule
	return all, c.do(ctx, http.MethodGet, "/rules", nil, &all)
}

// Calls lists the log of calls, oldest first; an empty method is every method.
func (c *Client) Calls(ctx context.Context, method string) ([]script.Call, error) {
	var all []script.Call
	return all, c.do(ctx, http.MethodGet, "/calls?method="+url.QueryEscape(method), nil, &all)
}

// Inventory lists what the driver stores.
func (c *Client) Inventory(ctx context.Context) (Inventory, error) {
	var all Inventory
	return all, c.do(ctx, http.MethodGet, "/inventory", nil, &all)
}

// Forget drops a volume or snapshot, given by id or name, without a trace.
func (c *Client) Forget(ctx context.Context, idOrName string) error {
	return c.do(ctx, http.MethodDelete, "/inventory?object="+url.QueryEscape(idOrName), nil, nil)
}

// ClearCalls empties the log.
func (c *Client) ClearCalls(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "/calls", nil, nil)
}

// Reset releases all rules and empties the log.
func (c *Client) Reset(ctx context.Context) error {
	if err := c.do(ctx, http.MethodDelete, "/rules", nil, nil); err != nil {
		return err
	}
	return c.ClearCalls(ctx)
}

// Crash ends the driver's process at once. The connection that breaks is the
// sign of success.
func (c *Client) Crash(ctx context.Context) error {
	err := c.do(ctx, http.MethodPost, "/crash", nil, nil)
	var op *net.OpError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || (errors.As(err, &op) && op.Op == "read") {
		return nil
	}
	if err == nil {
		return errors.New("crashing driver: it is still there")
	}
	return err
}

func (c *Client) do(ctx context.Context, method, path string, in, out any) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("asking control socket to %s %s: %w", method, path, err)
		}
	}()
	var body io.Reader
	if in != nil {
		content, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(content)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://driver"+path, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(content))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(content, out)
}
