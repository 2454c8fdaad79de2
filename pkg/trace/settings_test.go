// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const general, special = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"

// set makes the environment have these variables of OpenTelemetry and no others.
func set(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

func TestOff(t *testing.T) {
	for name, variables := range map[string]map[string]string{
		"nothing is said":      {},
		"a name alone":         {"OTEL_SERVICE_NAME": "a", "OTEL_RESOURCE_ATTRIBUTES": "nonsense"},
		"an empty endpoint":    {general + "ENDPOINT": " "},
		"no exporter":          {"OTEL_TRACES_EXPORTER": "none", general + "ENDPOINT": "nonsense"},
		"disabled":             {"OTEL_SDK_DISABLED": "TRUE", general + "ENDPOINT": "http://a:1"},
		"a sampler of nothing": {"OTEL_TRACES_SAMPLER": "always_off", general + "ENDPOINT": "http://a:1"},
		"a share of nothing":   {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0", general + "ENDPOINT": "http://a:1"},
	} {
		set(t, variables)
		if tracer, err := New(t.Context(), Options{Chance: strings.NewReader("")}); tracer != nil || err != nil {
			t.Errorf("%s: %v, %v", name, tracer, err)
		}
	}
}

func TestSettings(t *testing.T) {
	on := map[string]string{general + "ENDPOINT": "http://collector:4318"}
	rows := []struct {
		name string
		more map[string]string
		want func(*settings)
	}{
		{"an endpoint is enough", nil, func(*settings) {}},
		{"and so is one for traces, which is taken as it is", map[string]string{special + "ENDPOINT": "https://b/x?y=z"}, func(s *settings) { s.url = "https://b/x?y=z" }},
		{"a path before that of traces", map[string]string{general + "ENDPOINT": "http://b:1/otel/"}, func(s *settings) { s.url = "http://b:1/otel/v1/traces" }},
		{"said of traces counts more", map[string]string{general + "TIMEOUT": "1", special + "TIMEOUT": "250"}, func(s *settings) { s.timeout = 250 * time.Millisecond }},
		{"headers", map[string]string{general + "HEADERS": "authorization=Basic%20YQ==, x-scope = t"}, func(s *settings) {
			s.headers.Set("Authorization", "Basic YQ==")
			s.headers.Set("X-Scope", "t")
		}},
		{"compression", map[string]string{general + "COMPRESSION": "gzip", general + "PROTOCOL": "http/protobuf"}, func(s *settings) { s.gzip = true }},
		{"a share", map[string]string{"OTEL_TRACES_SAMPLER": "ParentBased_TraceIDRatio", "OTEL_TRACES_SAMPLER_ARG": "0.5"}, func(s *settings) { s.share = 1 << 62 }},
		{"a sampler of all", map[string]string{"OTEL_TRACES_SAMPLER": "always_on", "OTEL_TRACES_SAMPLER_ARG": "nonsense"}, func(*settings) {}},
		{"the queue", map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "5", "OTEL_BSP_SCHEDULE_DELAY": "100"}, func(s *settings) {
			s.most, s.batch, s.delay = 10, 5, 100*time.Millisecond
		}},
		{"who traces", map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "service.name=x,k8s.pod.name=a%20b", "OTEL_SERVICE_NAME": "y"}, func(s *settings) {
			s.resource[1].Text = "y"
			s.resource = append([]Attribute{{Key: "k8s.pod.name", Text: "a b"}}, s.resource...)
		}},
	}
	for _, row := range rows {
		said := maps.Clone(on)
		maps.Copy(said, row.more)
		set(t, said)
		got, err := readSettings(Options{Program: "p", Version: "v", Instance: "i"})
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		want := &settings{
			url: "http://collector:4318/v1/traces", headers: map[string][]string{}, timeout: 10 * time.Second,
			share: everything, most: 2048, batch: 512, delay: 5 * time.Second,
			resource: []Attribute{
				{Key: "service.instance.id", Text: "i"}, {Key: "service.name", Text: "p"}, {Key: "service.version", Text: "v"},
				{Key: "telemetry.sdk.language", Text: "go"}, {Key: "telemetry.sdk.name", Text: "csi-tandem"}, {Key: "telemetry.sdk.version", Text: "v"},
			},
		}
		row.want(want)
		if got.tls == nil || got.tls.MinVersion == 0 {
			t.Errorf("%s: TLS of any version", row.name)
		}
		got.tls = nil
		if d := cmp.Diff(want, got, cmp.AllowUnexported(settings{})); d != "" {
			t.Errorf("%s: %s", row.name, d)
		}
	}
}

// TestWrongEndpoint: the value is told, as far as nobody can log in with it.
func TestWrongEndpoint(t *testing.T) {
	for value, want := range map[string]string{
		"foo": "foo", "collector:4318": "collector:4318", "ftp://a:1": "ftp://a:1", "http://": "http://", "ftp://a/v1?key=canary": "ftp://a/…",
		"user:canary@collector": "…@collector", "http//user:canary@a": "…@a", "ftp://user:canary@a/x": "ftp://…@a/…",
		"http://user:can/ary@a/": "http://…@a/…", "http://user:can?ary#@a:1": "http://…@a:1", "ftp://user:c@n@ry@a": "ftp://…@a",
		"http://user:canary%zz@a": "http://…@a", "canary:x@ftp://a": "…@ftp:/…", "collector?canary": "collector?…", "a\nb": "a b",
	} {
		set(t, map[string]string{general + "ENDPOINT": value})
		_, err := readSettings(Options{})
		if text := general + "ENDPOINT=" + want + ": use a URL such as http://collector:4318"; err == nil || err.Error() != text {
			t.Errorf("%q: %v, want %q", value, err, text)
		}
	}
}

// TestWrongSettings: each is told with the name of its variable, and none repeats what may be a secret.
func TestWrongSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nothing.pem")
	if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for variable, value := range map[string]string{
		"OTEL_TRACES_EXPORTER": "zipkin", general + "ENDPOINT": "user:canary@collector", special + "ENDPOINT": "ftp://user:canary@a/",
		general + "PROTOCOL": "grpc", special + "PROTOCOL": "http/json", general + "HEADERS": "authorization", special + "HEADERS": "a=b%0Acanary",
		general + "TIMEOUT": "10s", special + "TIMEOUT": "-1", general + "COMPRESSION": "zstd", general + "CERTIFICATE": file,
		special + "CERTIFICATE": file + ".not", general + "CLIENT_KEY": file, "OTEL_TRACES_SAMPLER": "some",
		"OTEL_BSP_MAX_QUEUE_SIZE": "-1", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "0", "OTEL_BSP_SCHEDULE_DELAY": "soon", "OTEL_RESOURCE_ATTRIBUTES": "a=%zz",
	} {
		said := map[string]string{general + "ENDPOINT": "http://collector:4318"}
		said[variable] = value
		set(t, said)
		tracer, err := New(t.Context(), Options{Chance: strings.NewReader("")})
		switch {
		case tracer != nil || err == nil:
			t.Errorf("%s=%s is taken", variable, value)
		case !strings.Contains(err.Error(), variable) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "canary"):
			t.Errorf("%s=%s: %v", variable, value, err)
		}
	}
	for _, headers := range []string{"Basic canary=", "canary=a=b,can ary=c", "canary(=x", "=canary", "canary", "a=%zzcanary", "canary=a%0Ab"} {
		set(t, map[string]string{general + "ENDPOINT": "http://a:1", general + "HEADERS": headers})
		_, err := readSettings(Options{})
		if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "use ") {
			t.Errorf("headers %s: %v", headers, err)
		}
	}
	for _, ratio := range []string{"2", "-0.1", "NaN", "half"} {
		set(t, map[string]string{general + "ENDPOINT": "http://a:1", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": ratio})
		if _, err := readSettings(Options{}); err == nil || !strings.Contains(err.Error(), "OTEL_TRACES_SAMPLER_ARG") {
			t.Errorf("a share of %s: %v", ratio, err)
		}
	}
	set(t, map[string]string{"OTEL_TRACES_EXPORTER": "otlp"})
	if _, err := readSettings(Options{}); err == nil || !strings.Contains(err.Error(), general+"ENDPOINT") {
		t.Errorf("an exporter without an endpoint: %v", err)
	}
}
