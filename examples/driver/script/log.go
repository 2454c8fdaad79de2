// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Call is one entry of the log.
type Call struct {
	// Number counts calls since the start of the process.
	Number int       `json:"number"`
	Start  time.Time `json:"start"`
	// End is zero while the call is open.
	End    time.Time `json:"end,omitzero"`
	Method string    `json:"method"`
	// Request is the CSI message in its JSON form; of each secret only the
	// name and a hash of the value are kept.
	Request json.RawMessage `json:"request"`
	Code    codes.Code      `json:"code"`
	Message string          `json:"message,omitempty"`
}

// Log keeps the latest calls. It is safe for concurrent use.
type Log struct {
	now   func() time.Time
	limit int

	mu    sync.Mutex
	calls []*Call
	next  int
}

// NewLog makes a log that keeps the latest calls, at least limit of them and
// never more than twice as many.
func NewLog(now func() time.Time, limit int) *Log {
	return &Log{now: now, limit: max(1, limit)}
}

// Calls lists the log, oldest first; an empty method is every method.
func (l *Log) Calls(method string) []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := []Call{}
	for _, c := range l.calls {
		if method == "" || c.Method == method {
			found = append(found, *c)
		}
	}
	return found
}

// Clear empties the log; the numbers go on.
func (l *Log) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = nil
}

// Record is the interceptor that fills the log.
func (l *Log) Record(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	entry := &Call{Method: info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:], Request: Redact(req)}
	l.begin(entry)
	resp, err := next(ctx, req)
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.End = l.now()
	if err != nil {
		entry.Code, entry.Message = status.Code(err), status.Convert(err).Message()
	}
	return resp, err
}

func (l *Log) begin(entry *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	entry.Number, entry.Start = l.next, l.now()
	// Cutting half at a time keeps a full log from being moved at every call.
	if len(l.calls) >= 2*l.limit {
		l.calls = append([]*Call(nil), l.calls[len(l.calls)-l.limit:]...)
	}
	l.calls = append(l.calls, entry)
}

// Redact renders a request without the values of its secrets.
func Redact(req any) json.RawMessage {
	m, ok := req.(proto.Message)
	if !ok {
		return json.RawMessage("null")
	}
	m = proto.Clone(m)
	r := m.ProtoReflect()
	if field := r.Descriptor().Fields().ByName("secrets"); field != nil && field.IsMap() && r.Has(field) {
		secrets := r.Mutable(field).Map()
		var names []protoreflect.MapKey
		secrets.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
			names = append(names, k)
			return true
		})
		for _, k := range names {
			secrets.Set(k, protoreflect.ValueOfString(Hash(secrets.Get(k).String())))
		}
	}
	content, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return json.RawMessage("null")
	}
	return content
}

// Hash is what the log shows in place of the value of a secret.
func Hash(value string) string {
	sum := sha256.Sum256([]byte(value))
	return "sha256:" + hex.EncodeToString(sum[:8])
}
