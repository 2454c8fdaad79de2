// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

var update = flag.Bool("update", false, "write the flag tables of README.md anew")

// Users carry their flags over from the sidecar that they had; each name and default of it is here.
var (
	inherited = map[string]string{
		"automaxprocs":                    "false",
		"csi-address":                     "/run/csi/socket",
		"enable-distributed-snapshotting": "false",
		"extra-create-metadata":           "false",
		"feature-gates":                   "",
		"groupsnapshot-name-prefix":       "groupsnapshot",
		"groupsnapshot-name-uuid-length":  "-1",
		"http-endpoint":                   "",
		"kube-api-burst":                  "10",
		"kubeconfig":                      "",
		"leader-election":                 "false",
		"leader-election-labels":          "",
		"leader-election-lease-duration":  "15s",
		"leader-election-namespace":       "",
		"leader-election-renew-deadline":  "10s",
		"leader-election-retry-period":    "5s",
		"log-flush-frequency":             "5s",
		"log-json-info-buffer-size":       "0",
		"log-json-split-stream":           "false",
		"log-text-info-buffer-size":       "0",
		"log-text-split-stream":           "false",
		"logging-format":                  "text",
		"metrics-address":                 "",
		"metrics-path":                    "/metrics",
		"node-deployment":                 "false",
		"prevent-volume-mode-conversion":  "true",
		"resync-period":                   "15m0s",
		"retry-crd-interval-max":          "30s",
		"retry-interval-max":              "5m0s",
		"retry-interval-start":            "1s",
		"snapshot-name-prefix":            "snapshot",
		"snapshot-name-uuid-length":       "-1",
		"timeout":                         "1m0s",
		"v":                               "0",
		"version":                         "false",
		"vmodule":                         "",
		"worker-threads":                  "10",
		"max-parallel-calls":              "0",
	}

	// faster are those whose default is better than it was.
	faster = map[string]string{
		"kube-api-qps": "-1",
	}

	// ours are new here.
	ours = map[string]string{
		"status-pages":   "true",
		"bind-snapshots": "auto",
		"enable-pprof":   "false",
		"master":         "",
	}

	// retired are of older lines still.
	retiredFlags = map[string]string{
		"add_dir_header":                "false",
		"alsologtostderr":               "false",
		"connection-timeout":            "",
		"enable-volume-group-snapshots": "false",
		"leader-election-type":          "",
		"log_backtrace_at":              ":0",
		"log_dir":                       "",
		"log_file":                      "",
		"log_file_max_size":             "1800",
		"logtostderr":                   "true",
		"one_output":                    "false",
		"skip_headers":                  "false",
		"skip_log_headers":              "false",
		"stderrthreshold":               "2",
	}
)

func TestFlags(t *testing.T) {
	want := map[string]string{}
	for _, part := range []map[string]string{inherited, faster, ours, retiredFlags} {
		for name, value := range part {
			want[name] = value
		}
	}
	for _, f := range sidecar.FlagList(program()) {
		value, known := want[f.Name]
		if !known || value != f.Default {
			t.Errorf("--%s: default %q, want %q (known: %t)", f.Name, f.Default, value, known)
		}
		delete(want, f.Name)
	}
	for name := range want {
		t.Errorf("--%s is missing", name)
	}
}

// TestFlagsTable keeps the tables of README.md equal to the flags: go test -p 1 ./cmd/... -run TestFlagsTable -update
func TestFlagsTable(t *testing.T) {
	const readme = "../../README.md"
	data, err := os.ReadFile(readme)
	if err != nil {
		t.Skip("no README.md: ", err)
	}
	wanted, found := sidecar.ReplaceTable(string(data), program().Name, sidecar.FlagTable(program()))
	if !found {
		t.Skip("README.md has no markers <!-- flags:" + program().Name + " --> and <!-- /flags -->")
	}
	switch {
	case wanted == string(data):
	case *update:
		if err := os.WriteFile(readme, []byte(wanted), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("the flags have changed and their table has not: run go test -p 1 ./cmd/... -run TestFlagsTable -update")
	}
}

func TestRefusals(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"snapshotter --snapshot-name-prefix=", 1, `--snapshot-name-prefix must not be empty`},
		{"snapshotter --snapshot-name-uuid-length=33", 1, `--snapshot-name-uuid-length=33: use -1`},
		{"snapshotter --node-deployment", 255, `the variable NODE_NAME is empty`},
		{"snapshotter --node-deployment --version", 255, `the variable NODE_NAME is empty`},
		{"snapshotter --enable-distributed-snapshotting", 255, `set --kubeconfig or the KUBECONFIG variable`},
		{"snapshotter --feature-gates=CSIVolumeGroupSnapshot=true", 255, `does not have group snapshots yet`},
		{"snapshotter --feature-gates=CSIVolumeGroupSnapshot=false,ReleaseLeaderElectionOnExit=true", 255, `set --kubeconfig or the KUBECONFIG variable`},
		{"snapshotter --enable-volume-group-snapshots --connection-timeout=15s --leader-election-type=leases --logtostderr", 255, `set --kubeconfig or the KUBECONFIG variable`},
		{"snapshotter --bind-snapshots=some", 1, `--bind-snapshots=some: use auto, own, all or none`},
		{"snapshotter --csi-address=", 1, `--csi-address must not be empty`},
		{"snapshotter --csi-address= --bind-snapshots=all", 255, `set --kubeconfig or the KUBECONFIG variable`},
		{"/snapshot-controller --leader-election --retry-crd-interval-max=10s --prevent-volume-mode-conversion=false", 255, `set --kubeconfig or the KUBECONFIG variable`},
		{"/snapshot-controller --bind-snapshots=own", 1, `--csi-address must not be empty with --bind-snapshots=own`},
		{"/snapshot-controller --bind-snapshots=none", 1, `with --bind-snapshots=none: give the driver's socket, such as /run/csi/socket, or use --bind-snapshots=all`},
		{"/snapshot-controller --bind-snapshots=some", 1, `--bind-snapshots=some: use auto, own, all or none`},
		{"snapshotter import old", 2, `say either --handle`},
		{"snapshotter import old --handle=h", 2, `of which driver? say --class, or --driver-name with --deletion-policy`},
		{"snapshotter import old --handle=h --driver-name=d", 2, `say --class, or --deletion-policy=Retain`},
		{"snapshotter import old --handle=h --deletion-policy=Delete", 2, `of which driver?`},
		{"snapshotter import old --handle=h --class=c --deletion-policy=Keep", 2, `--deletion-policy=Keep: use Delete or Retain`},
		{"snapshotter import old --handle=h --class=c", 1, `no API server`},
	} {
		var stdout, stderr bytes.Buffer
		code := sidecar.Main(t.Context(), program(), strings.Fields(c.args), &stdout, &stderr)
		if code != c.code || !strings.Contains(stderr.String(), c.text) || strings.Count(stderr.String(), "\n") > 1 {
			t.Errorf("%s: exit %d, want %d; %s", c.args, code, c.code, stderr.String())
		}
	}
}

// S96: a snapshotter that does not know its node sees no contents, and one that has to lead leaves all other nodes without.
func TestLocalRefusals(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("NODE_NAME", "n1")
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"snapshotter --node-deployment --leader-election", 1, `leave --leader-election out`},
		{"snapshotter --node-deployment --leader-election --bind-snapshots=none", 1, `leave --leader-election out`},
		{"snapshotter --node-deployment --bind-snapshots=own", 1, `add --enable-distributed-snapshotting`},
		{"snapshotter --node-deployment --bind-snapshots=own --enable-distributed-snapshotting --leader-election-retry-period=0", 1, `--leader-election-retry-period=0s`},
		{"snapshotter --node-deployment --bind-snapshots=own --enable-distributed-snapshotting", 255, `set --kubeconfig or the KUBECONFIG variable`},
		{"snapshotter --node-deployment --bind-snapshots=own --enable-distributed-snapshotting --leader-election", 255, `set --kubeconfig or the KUBECONFIG variable`},
		{"snapshotter --node-deployment", 255, `set --kubeconfig or the KUBECONFIG variable`},
	} {
		var stdout, stderr bytes.Buffer
		code := sidecar.Main(t.Context(), program(), strings.Fields(c.args), &stdout, &stderr)
		if code != c.code || !strings.Contains(stderr.String(), c.text) {
			t.Errorf("S96 %s: exit %d, want %d; %s", c.args, code, c.code, stderr.String())
		}
	}
}

func TestMain(m *testing.M) {
	// The logs are configured once in a process; here many programs begin in one.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	os.Exit(m.Run())
}
