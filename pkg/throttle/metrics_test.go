// SPDX-License-Identifier: Apache-2.0

package throttle_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
)

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		d := gates(func(_ context.Context, op fault.Operation, name string) error {
			if name == "late" {
				return fault.New(op, status.Error(codes.DeadlineExceeded, "x"))
			}
			<-free
			return nil
		}, throttle.Options{Most: 2})
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(d)
		ctx := throttle.WithFlow(t.Context(), "fast")
		_ = create(throttle.WithFlow(ctx, "slow"), d, "late")
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() { _ = create(ctx, d, fmt.Sprint(i)) })
		}
		synctest.Wait()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				got[fmt.Sprint(family.GetName(), " ", metric.GetLabel()[1].GetValue(), " ", metric.GetLabel()[0].GetValue())] = metric.GetGauge().GetValue()
			}
		}
		if diff := cmp.Diff(map[string]float64{
			"csi_tandem_driver_calls_limit CreateVolume fast": 2, "csi_tandem_driver_calls_in_flight CreateVolume fast": 2,
			"csi_tandem_driver_calls_waiting CreateVolume fast": 3, "csi_tandem_driver_calls_unsettled CreateVolume fast": 0,
			"csi_tandem_driver_calls_limit CreateVolume slow": 2, "csi_tandem_driver_calls_in_flight CreateVolume slow": 0,
			"csi_tandem_driver_calls_waiting CreateVolume slow": 0, "csi_tandem_driver_calls_unsettled CreateVolume slow": 1,
		}, got); diff != "" {
			t.Error(diff)
		}
		close(free)
		all.Wait()
	})
}

// Classes come and go; what was learnt of those that nobody uses does not pile up.
func TestUnusedFlowsAreForgotten(t *testing.T) {
	d := gates(func(context.Context, fault.Operation, string) error { return nil }, throttle.Options{Most: 2})
	for i := range 1000 {
		_ = create(throttle.WithFlow(t.Context(), fmt.Sprint(i)), d, "x")
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(d)
	families, err := registry.Gather()
	if err != nil || len(families) == 0 || len(families[0].GetMetric()) > 64 {
		t.Errorf("%d flows, %v", len(families[0].GetMetric()), err)
	}
}

// TestWhoIsNotThereIsNotTooMuchAsked catches a limit that is halved because the driver was restarted, and a call that never
// left being taken for the driver's word about what an earlier one left open.
func TestWhoIsNotThereIsNotTooMuchAsked(t *testing.T) {
	for text, want := range map[string]int{
		`connection error: desc = "transport: Error while dialing: dial unix /csi/csi.sock: connect: connection refused"`: 16,
		"too many requests": 8,
	} {
		synctest.Test(t, func(t *testing.T) {
			code, said := codes.DeadlineExceeded, "x"
			d := gates(func(_ context.Context, op fault.Operation, _ string) error {
				return fault.New(op, status.Error(code, said))
			}, throttle.Options{Most: 100})
			_ = create(t.Context(), d, "open")
			time.Sleep(deadline)
			code, said = codes.Unavailable, text
			_ = create(t.Context(), d, "open")
			if f := d.Flows(); len(f) != 1 || f[0].Limit != want || f[0].Unsettled != 1 {
				t.Errorf("%s: %+v, want a limit of %d", text, f, want)
			}
		})
	}
}
