// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// scope is what the spans say of the code that made them.
const scope = "github.com/csi-tandem/csi-tandem"

// The numbers are those of opentelemetry/proto/trace/v1/trace.proto, common/v1/common.proto and resource/v1/resource.proto,
// which never change. A test reads the result with the generated types.
const (
	kindInternal = 1
	kindClient   = 3
	statusError  = 2
	// flagsSampled also says that it is known whether the parent is of another process, and that it is not.
	flagsSampled = 0x101
)

// encode is an ExportTraceServiceRequest.
func encode(batch []Record, resource []Attribute, version string) []byte {
	return message(nil, 1, func(b []byte) []byte { // resource_spans
		b = message(b, 1, func(b []byte) []byte { return appendAttributes(b, 1, resource) })
		return message(b, 2, func(b []byte) []byte { // scope_spans
			b = message(b, 1, func(b []byte) []byte { return text(text(b, 1, scope), 2, version) })
			for i := range batch {
				b = message(b, 2, func(b []byte) []byte { return appendSpan(b, &batch[i]) })
			}
			return b
		})
	})
}

func appendSpan(b []byte, r *Record) []byte {
	kind := uint64(kindInternal)
	if r.IsRequest {
		kind = kindClient
	}
	b = raw(b, 1, r.TraceID[:])
	b = raw(b, 2, r.ID[:])
	if r.Parent != (SpanID{}) {
		b = raw(b, 4, r.Parent[:])
	}
	b = text(b, 5, r.Name)
	b = integer(b, 6, kind)
	b = moment(b, 7, r.Begun)
	b = moment(b, 8, r.End)
	b = appendAttributes(b, 9, r.Attributes)
	if r.Failed != "" {
		b = message(b, 15, func(b []byte) []byte { return integer(text(b, 2, r.Failed), 3, statusError) })
	}
	return protowire.AppendFixed32(protowire.AppendTag(b, 16, protowire.Fixed32Type), flagsSampled)
}

func appendAttributes(b []byte, field protowire.Number, attributes []Attribute) []byte {
	for _, a := range attributes {
		b = message(b, field, func(b []byte) []byte {
			b = text(b, 1, a.Key)
			return message(b, 2, func(b []byte) []byte { // AnyValue
				if a.Text != "" {
					return text(b, 1, a.Text)
				}
				return integer(b, 3, uint64(a.Number)) //nolint:gosec // two's complement is the form on the wire
			})
		})
	}
	return b
}

func message(b []byte, field protowire.Number, fill func([]byte) []byte) []byte {
	return raw(b, field, fill(nil))
}

func raw(b []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
}

// text: what is not UTF-8, which the environment can be, makes collectors refuse the whole batch.
func text(b []byte, field protowire.Number, value string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), strings.ToValidUTF8(value, "�"))
}

func integer(b []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), value)
}

func moment(b []byte, field protowire.Number, t time.Time) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), uint64(max(t.UnixNano(), 0)))
}
