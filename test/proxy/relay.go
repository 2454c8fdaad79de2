// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// pass serves every RPC there is.
func (d *Driver) pass(_ any, stream grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(stream)
	if !ok {
		return status.Error(codes.Internal, "the call has no method")
	}
	r := &relay{driver: d, stream: stream, method: method}
	r.first = &frame{}
	switch err := stream.RecvMsg(r.first); {
	case errors.Is(err, io.EOF):
		r.first = nil
	case err != nil:
		return err
	}
	var request []byte
	if r.first != nil {
		request = r.first.content
	}
	if caller, ok := peer.FromContext(stream.Context()); ok {
		if info, ok := caller.AuthInfo.(connInfo); ok {
			r.conn = info.conn
		}
	}
	r.call = readCall(method, request)
	entry := d.journal.add(r.call)
	err := r.run()
	r.call.Finished = time.Now()
	if r.call.IsAnswered {
		r.call.Code = status.Code(err)
	}
	d.journal.edit(entry, func(c *Call) { *c = r.call })
	return err
}

// relay is one call on its way to the driver and back.
type relay struct {
	driver *Driver
	stream grpc.ServerStream
	method string
	// first is the first message of the client, nil if it sent none.
	first *frame
	call  Call
	conn  *conn
}

func (r *relay) run() error {
	if done, err := r.suffer(before); done {
		return err
	}
	if !r.call.IsEffect() {
		return r.finish(r.exchange())
	}
	counter, client := r.driver.counting()
	t, err := counter.begin(r.stream.Context(), Effect{
		Client: client, Verb: r.call.Method, Key: r.call.Name,
	}, r.conn.isConnected)
	if err != nil {
		return r.abandon(err, "cut before it was sent")
	}
	r.call.Effect = t.effect.Number
	answer := r.exchange()
	if cut := counter.end(t, status.Code(answer).String()); cut != nil {
		return r.abandon(cut, "cut after it took effect")
	}
	return r.finish(answer)
}

// finish passes the end of a call on. A message may have gone ahead, but the answer of a call that is no stream is seen
// only with its end.
func (r *relay) finish(answer error) error {
	if done, err := r.suffer(after); done {
		return err
	}
	r.call.IsAnswered = r.stream.Context().Err() == nil
	return answer
}

// suffer lets faults strike; done says that the call ends with err, which is an answer or the lack of one.
func (r *relay) suffer(at stage) (done bool, err error) {
	b, err := r.driver.suffer(r.stream.Context(), r.call, at)
	r.call.Faults = append(r.call.Faults, b.names...)
	switch {
	case err != nil:
		return true, status.FromContextError(r.stream.Context().Err()).Err()
	case !b.isAnswered:
		return false, nil
	case b.answer.isLost():
		if r.conn != nil {
			_ = r.conn.Close()
		}
		return true, silence(r.stream.Context())
	}
	r.call.IsAnswered = true
	return true, status.Error(b.answer.Code, b.answer.Message)
}

// abandon leaves the client without an answer until it gives up.
func (r *relay) abandon(err error, why string) error {
	if errors.Is(err, errSwallowed) {
		r.call.Faults = append(r.call.Faults, why)
		return silence(r.stream.Context())
	}
	return status.Error(codes.Canceled, err.Error())
}

// exchange has the call done by the driver and returns how it ended. Deadline and cancellation of the client reach the
// driver, as they would without a proxy.
func (r *relay) exchange() error {
	ctx, cancel := context.WithCancel(outgoing(r.stream.Context()))
	defer cancel()
	up, err := r.driver.upstream.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, r.method)
	if err != nil {
		return err
	}
	if r.first != nil {
		// When sending fails, receiving says why.
		if err := up.SendMsg(r.first); err == nil {
			go r.sendRest(up, cancel)
		}
	} else if err := up.CloseSend(); err != nil {
		return fmt.Errorf("ending the request: %w", err)
	}
	err = r.receive(up)
	r.stream.SetTrailer(up.Trailer())
	return err
}

// sendRest ends with the client's stream, at the latest when the handler returns.
func (r *relay) sendRest(up grpc.ClientStream, cancel context.CancelFunc) {
	for {
		message := &frame{}
		err := r.stream.RecvMsg(message)
		if errors.Is(err, io.EOF) {
			// When the stream is broken, receiving says why.
			_ = up.CloseSend()
			return
		}
		if err != nil {
			cancel()
			return
		}
		if up.SendMsg(message) != nil {
			return
		}
	}
}

func (r *relay) receive(up grpc.ClientStream) error {
	for hasHeader := false; ; {
		message := &frame{}
		err := up.RecvMsg(message)
		if !hasHeader {
			hasHeader = true
			if header, headerErr := up.Header(); headerErr == nil && header != nil {
				if err := r.stream.SetHeader(own(header)); err != nil {
					return err
				}
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := r.stream.SendMsg(message); err != nil {
			return err
		}
	}
}

func outgoing(ctx context.Context) context.Context {
	received, _ := metadata.FromIncomingContext(ctx)
	return metadata.NewOutgoingContext(ctx, own(received))
}

// own leaves out what belongs to a connection and not to a call.
func own(md metadata.MD) metadata.MD {
	kept := md.Copy()
	for name := range kept {
		switch {
		case strings.HasPrefix(name, ":"), strings.HasPrefix(name, "grpc-"), name == "content-type", name == "user-agent":
			delete(kept, name)
		}
	}
	return kept
}
