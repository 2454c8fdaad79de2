// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	exporterEnv    = "OTEL_TRACES_EXPORTER"
	disabledEnv    = "OTEL_SDK_DISABLED"
	samplerEnv     = "OTEL_TRACES_SAMPLER"
	ratioEnv       = "OTEL_TRACES_SAMPLER_ARG"
	otlpEnv        = "OTEL_EXPORTER_OTLP_"
	otlpTracesEnv  = "OTEL_EXPORTER_OTLP_TRACES_"
	tracesPath     = "/v1/traces"
	defaultTimeout = 10 * time.Second
)

// settings are what the environment says about the way to the collector. The names and meanings are those of the OpenTelemetry
// specification: "Environment Variables" and "OTLP Exporter Configuration".
type settings struct {
	url     string
	headers http.Header
	timeout time.Duration
	gzip    bool
	tls     *tls.Config

	share    share
	resource []Attribute
	// most spans wait, delay long or until they are a batch.
	most, batch int
	delay       time.Duration
}

// option reads what can be said for all signals and, with precedence, for traces. Name is the variable that says it.
func option(what string) (name, value string) {
	for _, prefix := range []string{otlpTracesEnv, otlpEnv} {
		if value := strings.TrimSpace(os.Getenv(prefix + what)); value != "" {
			return prefix + what, value
		}
	}
	return otlpEnv + what, ""
}

// readSettings gives nil when nothing is to be traced. Whatever is wrong leaves traces off: half of what was asked for, such as
// all spans instead of a sample, may cost more than none.
func readSettings(o Options) (*settings, error) {
	_, endpoint := option("ENDPOINT")
	exporter := strings.TrimSpace(os.Getenv(exporterEnv))
	switch {
	case strings.EqualFold(strings.TrimSpace(os.Getenv(disabledEnv)), "true"), exporter == "none":
		return nil, nil
	case exporter != "" && exporter != "otlp":
		return nil, fmt.Errorf("%s=%s: use otlp or none", exporterEnv, exporter)
	case endpoint == "" && exporter == "":
		return nil, nil
	case endpoint == "":
		return nil, fmt.Errorf("%s=otlp says how and not where to: set %sENDPOINT, such as http://collector:4318", exporterEnv, otlpEnv)
	}
	s := &settings{timeout: defaultTimeout}
	for _, read := range []func() error{s.readURL, s.readProtocol, s.readHeaders, s.readTimeout, s.readCompression, s.readTLS, s.readSampler, s.readQueue} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	if s.share == 0 {
		return nil, nil
	}
	return s, s.readResource(o)
}

// readURL: the endpoint for traces is taken as it is, the one for all signals gets the path of traces.
func (s *settings) readURL() error {
	name, value := option("ENDPOINT")
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%s=%s: use a URL such as http://collector:4318", name, withoutSecrets(value))
	}
	if name == otlpEnv+"ENDPOINT" {
		u = u.JoinPath(tracesPath)
	}
	s.url = u.String()
	return nil
}

// withoutSecrets is as much of an endpoint as nobody can log in with: neither user and password, whatever they are made of, nor path and
// query, which hold keys for some collectors. It is for what is no URL, so that url.URL.Redacted does not know either.
func withoutSecrets(endpoint string) string {
	scheme, rest := "", endpoint
	if before, after, found := strings.Cut(endpoint, "://"); found && !strings.ContainsAny(before, "@:/?#") {
		scheme, rest = before+"://", after
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		rest = "…" + rest[at:]
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end+1] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, scheme+rest)
}

func (s *settings) readProtocol() error {
	if name, value := option("PROTOCOL"); value != "" && value != "http/protobuf" {
		return fmt.Errorf("%s=%s: only http/protobuf is spoken, for which collectors mostly listen at port 4318", name, value)
	}
	return nil
}

// headerLetters are those of the names of headers, a token in RFC 9110.
const headerLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

func (s *settings) readHeaders() error {
	s.headers = http.Header{}
	name, value := option("HEADERS")
	read, err := pairs(name, value)
	if err != nil {
		return err
	}
	for key, text := range read {
		// The name is not repeated: where somebody wrote the value of a header alone, up to its padding, it is a secret.
		if strings.Trim(key, headerLetters) != "" || strings.ContainsFunc(text, unicode.IsControl) {
			return fmt.Errorf("%s: there is a name that no header can have, or a line break in a value; use name=value,name=value", name)
		}
		s.headers.Set(key, text)
	}
	return nil
}

func (s *settings) readTimeout() error {
	name, value := option("TIMEOUT")
	if value == "" {
		return nil
	}
	milliseconds, err := strconv.ParseUint(value, 10, 31)
	if err != nil || milliseconds == 0 {
		return fmt.Errorf("%s=%s: use a number of milliseconds", name, value)
	}
	s.timeout = time.Duration(milliseconds) * time.Millisecond
	return nil
}

func (s *settings) readCompression() error {
	name, value := option("COMPRESSION")
	if value != "" && value != "none" && value != "gzip" {
		return fmt.Errorf("%s=%s: use gzip or none", name, value)
	}
	s.gzip = value == "gzip"
	return nil
}

func (s *settings) readTLS() error {
	caName, ca := option("CERTIFICATE")
	certName, cert := option("CLIENT_CERTIFICATE")
	keyName, key := option("CLIENT_KEY")
	s.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return fmt.Errorf("%s: %w", caName, err)
		}
		s.tls.RootCAs = x509.NewCertPool()
		if !s.tls.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s=%s: there is no certificate in the file", caName, ca)
		}
	}
	switch {
	case cert == "" && key == "":
		return nil
	case cert == "" || key == "":
		return fmt.Errorf("%s and %s go together: set both or none", certName, keyName)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", certName, keyName, err)
	}
	s.tls.Certificates = []tls.Certificate{pair}
	return nil
}

// samplers are those of the specification, and whether they take a share. There is no parent: each look begins a trace, or goes
// on with one of ours.
var samplers = map[string]bool{
	"always_on": false, "always_off": false, "traceidratio": true,
	"parentbased_always_on": false, "parentbased_always_off": false, "parentbased_traceidratio": true,
}

func (s *settings) readSampler() error {
	sampler := strings.ToLower(strings.TrimSpace(os.Getenv(samplerEnv)))
	hasShare, known := samplers[sampler]
	s.share = everything
	switch {
	case sampler == "":
		return nil
	case !known:
		return fmt.Errorf("%s=%s: use one of %s", samplerEnv, sampler, strings.Join(slices.Sorted(maps.Keys(samplers)), ", "))
	case strings.HasSuffix(sampler, "_off"):
		s.share = 0
	}
	ratio := strings.TrimSpace(os.Getenv(ratioEnv))
	if !hasShare || ratio == "" {
		return nil
	}
	part, err := strconv.ParseFloat(ratio, 64)
	if err != nil || !(part >= 0 && part <= 1) {
		return fmt.Errorf("%s=%s: use a number from 0 to 1", ratioEnv, ratio)
	}
	s.share = shareOf(part)
	return nil
}

// mostSpans bounds what the environment can make the queue hold, each of whose places takes memory at once.
const mostSpans = 100_000

func (s *settings) readQueue() error {
	var delay int
	for _, row := range []struct {
		name               string
		into               *int
		usual, least, most int
	}{
		{"OTEL_BSP_MAX_QUEUE_SIZE", &s.most, 2048, 1, mostSpans},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", &s.batch, 512, 1, mostSpans},
		{"OTEL_BSP_SCHEDULE_DELAY", &delay, 5000, 0, math.MaxInt32},
	} {
		*row.into = row.usual
		value := strings.TrimSpace(os.Getenv(row.name))
		if value == "" {
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < row.least || n > row.most {
			return fmt.Errorf("%s=%s: use a number from %d to %d", row.name, value, row.least, row.most)
		}
		*row.into = n
	}
	s.delay = time.Duration(delay) * time.Millisecond
	return nil
}

// readResource says who traces. What the environment says of that counts.
func (s *settings) readResource(o Options) error {
	said := map[string]string{
		"service.name": o.Program, "service.version": o.Version, "service.instance.id": o.Instance,
		"telemetry.sdk.language": "go", "telemetry.sdk.name": "csi-tandem", "telemetry.sdk.version": o.Version,
	}
	more, err := pairs("OTEL_RESOURCE_ATTRIBUTES", os.Getenv("OTEL_RESOURCE_ATTRIBUTES"))
	if err != nil {
		return err
	}
	maps.Copy(said, more)
	if name := strings.TrimSpace(os.Getenv("OTEL_SERVICE_NAME")); name != "" {
		said["service.name"] = name
	}
	var list [][2]string
	for _, key := range slices.Sorted(maps.Keys(said)) {
		list = append(list, [2]string{key, said[key]})
	}
	s.resource = texts(list)
	return nil
}

// pairs reads key=value,key=value with what is special percent-encoded. It never repeats a value: those of headers log in.
func pairs(name, value string) (map[string]string, error) {
	read := map[string]string{}
	for pair := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, text, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		text, err := url.PathUnescape(strings.TrimSpace(text))
		if !ok || key == "" || err != nil {
			return nil, fmt.Errorf("%s: use key=value,key=value with special characters percent-encoded", name)
		}
		read[key] = text
	}
	return read, nil
}
