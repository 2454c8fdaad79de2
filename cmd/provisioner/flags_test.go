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
		"automaxprocs":                      "false",
		"capacity-for-immediate-binding":    "false",
		"capacity-ownerref-level":           "1",
		"capacity-poll-interval":            "1m0s",
		"cloning-protection-threads":        "1",
		"controller-publish-readonly":       "false",
		"csi-address":                       "/run/csi/socket",
		"default-fstype":                    "",
		"enable-capacity":                   "false",
		"enable-pprof":                      "false",
		"extra-create-metadata":             "false",
		"feature-gates":                     "",
		"http-endpoint":                     "",
		"immediate-topology":                "true",
		"kube-api-burst":                    "10",
		"kube-api-capacity-burst":           "5",
		"kubeconfig":                        "",
		"leader-election":                   "false",
		"leader-election-labels":            "",
		"leader-election-lease-duration":    "15s",
		"leader-election-namespace":         "",
		"leader-election-renew-deadline":    "10s",
		"leader-election-retry-period":      "5s",
		"log-flush-frequency":               "5s",
		"log-json-info-buffer-size":         "0",
		"log-json-split-stream":             "false",
		"log-text-info-buffer-size":         "0",
		"log-text-split-stream":             "false",
		"logging-format":                    "text",
		"master":                            "",
		"metrics-address":                   "",
		"metrics-path":                      "/metrics",
		"node-deployment":                   "false",
		"node-deployment-base-delay":        "20s",
		"node-deployment-immediate-binding": "true",
		"node-deployment-max-delay":         "1m0s",
		"prevent-volume-mode-conversion":    "true",
		"retry-interval-max":                "5m0s",
		"retry-interval-start":              "1s",
		"snapshot-orphan-sweep-interval":    "5m0s",
		"strict-topology":                   "false",
		"timeout":                           "10s",
		"v":                                 "0",
		"version":                           "false",
		"vmodule":                           "",
		"volume-name-prefix":                "pvc",
		"volume-name-uuid-length":           "-1",
		"worker-threads":                    "100",
		"max-parallel-calls":                "0",
	}

	// faster are those whose default is better than it was.
	faster = map[string]string{
		"capacity-threads":      "10",
		"kube-api-capacity-qps": "-1",
		"kube-api-qps":          "-1",
	}

	// ours are new here.
	ours = map[string]string{
		"attempt-record":                         "true",
		"status-pages":                           "true",
		"create-parameter-annotations":           "",
		"create-parameter-labels":                "",
		"create-parameter-namespace-annotations": "",
		"create-parameter-namespace-labels":      "",
		"restore-size":                           "refuse",
		"restore-topology":                       "ignore",
		"resync-period":                          "15m0s",
		"volume-name-template":                   "",
	}

	// retired are of older lines still.
	retiredFlags = map[string]string{
		"add_dir_header":         "false",
		"alsologtostderr":        "false",
		"connection-timeout":     "",
		"enable-leader-election": "false",
		"leader-election-type":   "",
		"log_backtrace_at":       ":0",
		"log_dir":                "",
		"log_file":               "",
		"log_file_max_size":      "1800",
		"logtostderr":            "true",
		"one_output":             "false",
		"provisioner":            "",
		"skip_headers":           "false",
		"skip_log_headers":       "false",
		"stderrthreshold":        "2",
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
		{"provisioner --volume-name-prefix=", 1, `--volume-name-prefix must not be empty`},
		{"provisioner --volume-name-uuid-length=33", 1, `--volume-name-uuid-length=33: use -1`},
		{"provisioner --volume-name-uuid-length=0", 1, `--volume-name-uuid-length=0: use -1`},
		{"provisioner --volume-name-template={namespace}-{name}", 1, `--volume-name-template={namespace}-{name}: it has to contain {uid}`},
		{"provisioner --volume-name-template={uid} --volume-name-prefix=x", 1, `--volume-name-template replaces --volume-name-prefix and --volume-name-uuid-length: leave them out`},
		{"provisioner --restore-size=shrink", 1, `--restore-size=shrink: use refuse or grow`},
		{"provisioner --restore-topology=far", 1, `--restore-topology=far: use ignore or prefer-source`},
		{"provisioner --create-parameter-labels=a,b,a", 1, `--create-parameter-labels: "a" is there twice`},
		{"provisioner --create-parameter-namespace-labels=/", 1, `--create-parameter-namespace-labels: "/" is no key of labels or annotations`},
		{"provisioner --enable-capacity --capacity-threads=0", 1, `--capacity-threads=0: nothing would be done`},
		{"provisioner --enable-capacity --capacity-poll-interval=0", 1, `--capacity-poll-interval=0s: use a duration such as 1m`},
		{"provisioner --enable-capacity --kube-api-capacity-qps=1 --kube-api-capacity-burst=0", 1, `--kube-api-capacity-burst=0: use 1 or more`},
		// Catches a program that asks for its variables once it has found the driver, for which it may wait for ever.
		{"provisioner --enable-capacity", 255, `--enable-capacity: set the variable NAMESPACE`},
		// A question is asked with the flags of the pod, and somewhere else.
		{"provisioner explain data --enable-capacity --kubeconfig=/nowhere", 1, `/nowhere`},
		{"provisioner --node-deployment", 255, `the variable NODE_NAME is empty`},
		{"provisioner --node-deployment --version", 255, `the variable NODE_NAME is empty`},
		{"provisioner --node-deployment=false --enable-capacity=false --capacity-threads=3", 255, `set --kubeconfig or the KUBECONFIG variable`},
		{"provisioner --feature-gates=CrossNamespaceVolumeDataSource=true", 255, `set --kubeconfig or the KUBECONFIG variable`},
		{"provisioner --feature-gates=HonorPVReclaimPolicy=true,CSINodeExpandSecret=true,ReleaseLeaderElectionOnExit=true,Topology=false,VolumeAttributesClass=false", 255, `set --kubeconfig or the KUBECONFIG variable`},
		{"provisioner --provisioner=x --connection-timeout=15s --enable-leader-election --leader-election-type=leases --logtostderr --alsologtostderr=false", 255, `set --kubeconfig or the KUBECONFIG variable`},
		{"provisioner --csi-address=", 1, `--csi-address must not be empty`},
		{"provisioner --snapshot-name-prefix=x", 2, `--snapshot-name-prefix: there is no such flag`},
	} {
		var stdout, stderr bytes.Buffer
		code := sidecar.Main(t.Context(), program(), strings.Fields(c.args), &stdout, &stderr)
		if code != c.code || !strings.Contains(stderr.String(), c.text) || strings.Count(stderr.String(), "\n") > 1 {
			t.Errorf("%s: exit %d, want %d; %s", c.args, code, c.code, stderr.String())
		}
	}
}

// TestCapacityNeedsThePod: the variables are looked at before anything else is.
func TestCapacityNeedsThePod(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("NAMESPACE", "ns")
	t.Setenv("POD_NAME", "")
	for args, text := range map[string]string{
		"--enable-capacity": `set the variable POD_NAME`,
		"--enable-capacity --capacity-ownerref-level=-1": `set --kubeconfig or the KUBECONFIG variable`,
	} {
		var stdout, stderr bytes.Buffer
		code := sidecar.Main(t.Context(), program(), append([]string{"provisioner"}, strings.Fields(args)...), &stdout, &stderr)
		if code != 255 || !strings.Contains(stderr.String(), text) {
			t.Errorf("%s: exit %d; %s", args, code, stderr.String())
		}
	}
}

func TestLocalRefusals(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("NODE_NAME", "n1")
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"provisioner --node-deployment --node-deployment-base-delay=0", 1, `--node-deployment-base-delay=0s: use a duration such as 20s`},
		{"provisioner --node-deployment --node-deployment-max-delay=10s", 1, `--node-deployment-max-delay=10s: use at least --node-deployment-base-delay, which is 20s`},
		{"provisioner --node-deployment-max-delay=10s", 255, `set --kubeconfig or the KUBECONFIG variable`},
		{"provisioner --node-deployment --node-deployment-immediate-binding=false", 255, `set --kubeconfig or the KUBECONFIG variable`},
	} {
		var stdout, stderr bytes.Buffer
		code := sidecar.Main(t.Context(), program(), strings.Fields(c.args), &stdout, &stderr)
		if code != c.code || !strings.Contains(stderr.String(), c.text) {
			t.Errorf("%s: exit %d, want %d; %s", c.args, code, c.code, stderr.String())
		}
	}
}

func TestMain(m *testing.M) {
	// The logs are configured once in a process; here many programs begin in one.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	os.Exit(m.Run())
}
