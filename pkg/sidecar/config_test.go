// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// kubeconfig writes a file whose server can be told by its name.
func kubeconfig(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],` +
		`"clusters":[{"name":"c","cluster":{"server":"http://` + name + `"}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhichAPIServer(t *testing.T) {
	flagged, fromEnv := kubeconfig(t, "flag"), kubeconfig(t, "env")
	for _, c := range []struct {
		name, env, want string
		options         Options
	}{
		{"the flag", "", "http://flag", Options{Kubeconfig: flagged}},
		{"the variable", fromEnv, "http://env", Options{}},
		{"both, in the snapshotter", fromEnv, "http://flag", Options{Kubeconfig: flagged}},
		{"both, in the provisioner", fromEnv, "http://env", Options{Kubeconfig: flagged, EnvironmentFirst: true}},
		{"a URL", "", "http://elsewhere", Options{Master: "http://elsewhere"}},
		{"a URL on top of a file", "", "http://elsewhere", Options{Master: "http://elsewhere", Kubeconfig: flagged}},
		{"a file that is not there", "/does/not/exist", "", Options{}},
		{"nothing", "", "", Options{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", c.env)
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			config, err := buildConfig(&c.options, "agent")
			if (err != nil) != (c.want == "") {
				t.Fatalf("error: %v", err)
			}
			if err == nil && config.Host != c.want {
				t.Errorf("%s, want %s", config.Host, c.want)
			}
		})
	}
}

func TestTwoFilesAreWarnedOf(t *testing.T) {
	for _, c := range []struct {
		name, env, flag, want string
		first                 bool
	}{
		{name: "one", flag: "/a"},
		{name: "the other", env: "/a"},
		{name: "both the same", env: "/a/./b", flag: "/a/b"},
		{name: "both, in the snapshotter", env: "/a", flag: "/b", want: "--kubeconfig counts"},
		{name: "both, in the provisioner", env: "/a", flag: "/b", first: true, want: "the KUBECONFIG variable counts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", c.env)
			got := strings.Join(configWarnings(&Options{Kubeconfig: c.flag, EnvironmentFirst: c.first}), "\n")
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("warned %q, want %q in it", got, c.want)
			}
		})
	}
}

// TestOddAddressesAreWarnedOf catches a program that takes, without a word, a server that it will ask without TLS, and metrics in
// the place of the page.
func TestOddAddressesAreWarnedOf(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	page := func(path, address string, pages bool) Options {
		return Options{HTTP: HTTPOptions{MetricsPath: path, Endpoint: address, Pages: pages}}
	}
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{Master: "foo"}, "--master=foo has no scheme, and is asked by http"},
		{Options{Master: "https://foo"}, ""},
		{page("/", ":8080", true), "--metrics-path=/: the metrics take the place of the page"},
		{page("/", ":8080", false), ""},
		{page("/", "", true), ""},
		{page("/metrics", ":8080", true), ""},
	} {
		got := strings.Join(configWarnings(&c.options), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: warned %q, want %q in it", c.options, got, c.want)
		}
	}
}

func TestClientLimits(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	for given, want := range map[float64]float32{-1: -1, 0: -1, 7.5: 7.5} {
		config, err := buildConfig(&Options{Master: "http://x", KubeAPIQPS: given, KubeAPIBurst: 10}, "agent")
		if err != nil || config.QPS != want || config.Burst != 10 {
			t.Errorf("--kube-api-qps=%v: %v %v %v", given, config.QPS, config.Burst, err)
		}
		if own := leaseConfig(config, 10*time.Second); own.QPS != -1 || own.Timeout != 5*time.Second {
			t.Errorf("the elector's client: %v %v", own.QPS, own.Timeout)
		}
	}
}

func TestIdentities(t *testing.T) {
	now := time.UnixMilli(1700000000123)
	if got := newIdentity(now, "d.example", ""); !regexp.MustCompile(`^1700000000123-\d{1,4}-d\.example$`).MatchString(got) {
		t.Errorf("identity %q", got)
	}
	one, two := holderIdentity("host.example_"), holderIdentity("host.example_")
	if one == two || !strings.HasPrefix(one, "host-example-X-") {
		t.Errorf("holders %q and %q", one, two)
	}
}

func TestLeaseNames(t *testing.T) {
	for got, want := range map[string]string{
		SanitizedLease("hostpath.csi.k8s.io"):   "hostpath-csi-k8s-io",
		SanitizedLease("a.b/c_"):                "a-b-c-X",
		SnapshotterLease("hostpath.csi.k8s.io"): "external-snapshotter-leader-hostpath-csi-k8s-io",
		SnapshotterLease("a.b/c"):               "external-snapshotter-leader-a-b-c", // S94
		BinderLease:                             "snapshot-controller-leader",
		OwnBinderLease("a.b/c"):                 "snapshot-controller-leader-a-b-c",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLeaseNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if err := os.WriteFile(file, []byte("of-the-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flagged, env, file, want string }{
		{"flagged", "pod", file, "flagged"},
		{"", "pod", file, "pod"},
		{"", "", file, "of-the-file"},
		{"", "", "/does/not/exist", "default"},
	} {
		t.Setenv("POD_NAMESPACE", c.env)
		if got := leaseNamespace(c.flagged, c.file); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
