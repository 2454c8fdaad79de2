// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
	"github.com/csi-tandem/csi-tandem/pkg/trace"
)

// joining is a driver that notes which trace it was asked to join.
type joining struct {
	*server
	parents []string
}

func (j *joining) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	given, _ := metadata.FromIncomingContext(ctx)
	j.parents = given.Get("traceparent")
	return j.server.CreateVolume(ctx, r)
}

// TestCallsAreTraced catches a driver that cannot join the trace, and spans that repeat a request or the driver's words.
func TestCallsAreTraced(t *testing.T) {
	s := serve(t)
	s.volume, s.snapshot = &csi.Volume{VolumeId: "v-1"}, &csi.Snapshot{SnapshotId: "s-1"}
	j := &joining{server: s}
	s.stop()
	s.startAs(t, j)
	conn := connect(t, s, driver.Options{})
	if _, err := conn.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	var records []trace.Record
	tracer, err := trace.NewInto(func(r trace.Record) { records = append(records, r) }, trace.Options{Clock: clock.RealClock{}, Chance: strings.NewReader(strings.Repeat("seed", 8))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, look := trace.Begin(trace.NewContext(t.Context(), tracer), "claims", "ns", "data")
	secret := map[string]string{"token": "canary"}
	if _, err := conn.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: "pvc-1", Parameters: map[string]string{"a": "canary"}, Secrets: secret}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{SourceVolumeId: "v-1", Secrets: secret}); err != nil {
		t.Fatal(err)
	}
	s.failing(codes.Internal, "canary")
	if err := conn.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "v-2"}); err == nil {
		t.Fatal("no failure")
	}
	if len(j.parents) != 1 || j.parents[0] != "00-"+records[0].TraceID.String()+"-"+records[0].ID.String()+"-01" {
		t.Errorf("the driver joins %q, and the call is %v", j.parents, records[0])
	}
	look.End("")
	var got []string
	for _, r := range records[:3] {
		line := r.Name + " → " + r.Failed
		for _, a := range r.Attributes {
			if a.Text == "" {
				line += " " + a.Key + ":" + codes.Code(a.Number).String() //nolint:gosec // a code
				continue
			}
			line += " " + a.Key + "=" + a.Text
		}
		got = append(got, line)
	}
	const about = " rpc.system=grpc rpc.service=csi.v1.Controller rpc.method="
	const by = " csi.driver.name=tandem.csi.example"
	want := []string{
		"csi.v1.Controller/CreateVolume → " + about + "CreateVolume" + by + " csi.volume.handle=v-1 rpc.grpc.status_code:OK",
		"csi.v1.Controller/CreateSnapshot → " + about + "CreateSnapshot" + by + " csi.volume.handle=v-1 csi.snapshot.handle=s-1 rpc.grpc.status_code:OK",
		"csi.v1.Controller/DeleteVolume → Internal" + about + "DeleteVolume" + by + " csi.volume.handle=v-2 rpc.grpc.status_code:Internal",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// Nobody joins what is not traced.
	s.change(func() { s.err = nil })
	if _, err := conn.CreateVolume(t.Context(), &csi.CreateVolumeRequest{}); err != nil || len(j.parents) != 0 {
		t.Errorf("%v, joins %q", err, j.parents)
	}
}
