// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"debug/buildinfo"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/grpc/codes"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
)

// freeAddress is one that nothing listens on right now.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// families are the metrics of one scrape.
type families map[string]*dto.MetricFamily

func (w *world) scrape(address string) families {
	w.Helper()
	answer, err := http.Get("http://" + address + "/metrics")
	w.mustNot(err)
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(answer.Body)
	w.mustNot(err)
	return all
}

// count is the value of the series that has exactly these labels; how often something was observed, for histograms. It is -1
// where there is none.
func (f families) count(name string, labels map[string]string) float64 {
	for _, m := range f[name].GetMetric() {
		got := map[string]string{}
		for _, l := range m.GetLabel() {
			got[l.GetName()] = l.GetValue()
		}
		if maps.Equal(got, labels) {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return -1
}

// TestMetrics (T106, PW-26, PW-28, PP-13): names and labels that dashboards rely on, after one success, one failure and one deletion. What
// is not ours, or waits, counts as neither. Catches one that counts a claim of another driver, or a volume that is there
// already, as failed.
func TestMetrics(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	w := begin(t, setup{withoutSnapshotter: true, provisioner: []string{"--http-endpoint=" + address, "--leader-election", "--leader-election-namespace=csi-tandem", "--retry-interval-start=200ms"}})
	class := w.class("class")
	w.claim("foreign", w.class("foreign", ofAnother))
	w.claim("late", w.class("late", waiting))
	w.told("late", "WaitForFirstConsumer")
	w.rule(w.script.Fail(w.ctx, control.On("CreateVolume").Times(1), codes.NotFound))
	w.claim("data", class)
	pv := w.bound("data")
	w.deleteClaim("data")
	w.volumeGone(pv.Name)
	got := w.scrape(address)
	for _, row := range []struct {
		name   string
		labels map[string]string
		want   float64
	}{
		{"controller_persistentvolumeclaim_provision_total", map[string]string{"class": class, "source": ""}, 1},
		{"controller_persistentvolumeclaim_provision_failed_total", map[string]string{"class": class, "source": ""}, 1},
		{"controller_persistentvolumeclaim_provision_duration_seconds", map[string]string{"class": class, "source": ""}, 1},
		{"controller_persistentvolume_delete_total", map[string]string{"class": class}, 1},
		{"controller_persistentvolume_delete_duration_seconds", map[string]string{"class": class}, 1},
		{"csi_sidecar_operations_seconds", w.operation("CreateVolume", "OK"), 1},
		{"csi_sidecar_operations_seconds", w.operation("CreateVolume", "NotFound"), 1},
		{"csi_sidecar_operations_seconds", w.operation("DeleteVolume", "OK"), 1},
	} {
		if value := got.count(row.name, row.labels); value != row.want {
			t.Errorf("%s%v is %v, want %v", row.name, row.labels, value, row.want)
		}
	}
	for name, most := range map[string]int{
		"controller_persistentvolumeclaim_provision_failed_total": 1, "controller_persistentvolume_delete_failed_total": 0,
		"controller_persistentvolumeclaim_provision_total": 1, "controller_persistentvolume_delete_total": 1,
	} {
		if n := len(got[name].GetMetric()); n != most {
			t.Errorf("%s has %d series, want %d: %v", name, n, most, got[name])
		}
	}
	for _, queue := range []string{"claims", "volumes"} {
		for _, name := range []string{"workqueue_depth", "workqueue_adds_total", "workqueue_queue_duration_seconds", "workqueue_work_duration_seconds",
			"workqueue_unfinished_work_seconds", "workqueue_longest_running_processor_seconds", "workqueue_retries_total"} {
			if got.count(name, map[string]string{"name": queue}) < 0 {
				t.Errorf("there is no %s of queue %s", name, queue)
			}
		}
	}
	lease := strings.ReplaceAll(w.driver, ".", "-")
	if value := got.count("leader_election_master_status", map[string]string{"name": lease}); value != 1 {
		t.Errorf("leading is %v: %v", value, got["leader_election_master_status"])
	}
	if _, ok := got["process_start_time_seconds"]; !ok {
		t.Error("the metrics of the process are missing")
	}
	checkFamilies(t, got)
	checkParts(t, w.provisioner.Path)
	// What leads and is told to end ends well (PW-26).
	if state := w.provisioner.Terminate(); state.ExitCode() != 0 {
		t.Errorf("ended with %v", state)
	}
	w.mustNot(w.provisioner.Start())
}

func ofAnother(c *storagev1.StorageClass) { c.Provisioner = "other.example" }

// operation are the labels of one kind of call.
func (w *world) operation(method, code string) map[string]string {
	return map[string]string{"driver_name": w.driver, "method_name": "/csi.v1.Controller/" + method, "grpc_status_code": code}
}

// checkParts: the program is built of what it needs, and an API server or its storage is not among that.
func checkParts(t *testing.T, program string) {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range info.Deps {
		for _, heavy := range []string{"k8s.io/apiserver", "k8s.io/kubernetes", "k8s.io/component-helpers", "go.etcd.io/", "sigs.k8s.io/gateway-api"} {
			if strings.HasPrefix(part.Path, heavy) {
				t.Errorf("%s is in %s", part.Path, program)
			}
		}
	}
}

// checkFamilies: nothing is exposed that belongs to an API server or to nobody.
func checkFamilies(t *testing.T, got families) {
	t.Helper()
	known := []string{"controller_", "csi_", "workqueue_", "leader_election_", "process_", "go_", "promhttp_", "rest_client_",
		// What the library of the Kubernetes components counts of itself.
		"hidden_metrics_total", "registered_metrics_total", "disabled_metrics_total", "cardinality_enforcement_"}
	for name := range got {
		if !slices.ContainsFunc(known, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			t.Errorf("%s is exposed, and nobody knows why", name)
		}
	}
}
