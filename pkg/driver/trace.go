// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"path"
	"strings"
	"sync/atomic"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/trace"
)

// traced is a connection whose calls are spans of the look in hand. The driver gets the trace along in the metadata, so that a
// driver that traces joins it.
type traced struct {
	grpc.ClientConnInterface
	driver atomic.Pointer[string]
	// guard goes with each call that means a volume or a snapshot of this driver.
	guard grpc.CallOption
}

// Invoke implements grpc.ClientConnInterface.
func (t *traced) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	service, name := path.Split(method)
	if service == "/csi.v1.Controller/" && name != "ControllerGetCapabilities" {
		options = append(options, t.guard)
	}
	ctx, span := trace.Start(ctx, strings.TrimPrefix(method, "/"))
	if span.IsNone() {
		return t.ClientConnInterface.Invoke(ctx, method, request, reply, options...)
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", trace.Parent(ctx))
	span.Set("rpc.system", "grpc")
	span.Set("rpc.service", strings.Trim(service, "/"))
	span.Set("rpc.method", name)
	if driver := t.driver.Load(); driver != nil {
		span.Set("csi.driver.name", *driver)
	}
	err := t.ClientConnInterface.Invoke(ctx, method, request, reply, options...)
	noteHandles(span, request, reply)
	code, why := 0, ""
	if failure := fault.New(fault.Operation(name), err); failure != nil {
		// The code only: a driver's words may repeat what was sent to it.
		code, why = int(failure.Code), failure.Code.String()
	}
	span.SetNumber("rpc.grpc.status_code", code)
	span.End(why)
	return err
}

// noteHandles notes what the call was about, which is in the request or, for what was made, in the answer.
func noteHandles(span trace.Span, request, reply any) {
	for _, said := range []any{request, reply} {
		switch m := said.(type) {
		case interface{ GetVolumeId() string }:
			span.Set("csi.volume.handle", m.GetVolumeId())
		case interface{ GetVolume() *csi.Volume }:
			span.Set("csi.volume.handle", m.GetVolume().GetVolumeId())
		case interface{ GetSourceVolumeId() string }:
			span.Set("csi.volume.handle", m.GetSourceVolumeId())
		}
		switch m := said.(type) {
		case interface{ GetSnapshotId() string }:
			span.Set("csi.snapshot.handle", m.GetSnapshotId())
		case interface{ GetSnapshot() *csi.Snapshot }:
			span.Set("csi.snapshot.handle", m.GetSnapshot().GetSnapshotId())
		}
	}
}
