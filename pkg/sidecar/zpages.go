// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The pages have the paths and the two forms of those of the Kubernetes components (KEP-4827, KEP-4828). The library for
// them is that of the API server, which is larger than both sidecars together.
const (
	statuszPath = "/statusz"
	flagzPath   = "/flagz"
	zGroup      = "config.k8s.io"
	zVersion    = "v1beta1"
	zWarning    = "Warning: this page is for people who look for a fault. Its form may change at any time; programs ask for JSON."
)

type zMeta struct {
	Kind       string            `json:"kind"`
	APIVersion string            `json:"apiVersion"`
	Metadata   map[string]string `json:"metadata"`
}

type statusz struct {
	zMeta
	StartTime     time.Time `json:"startTime"`
	UptimeSeconds int64     `json:"uptimeSeconds"`
	GoVersion     string    `json:"goVersion"`
	BinaryVersion string    `json:"binaryVersion"`
	Paths         []string  `json:"paths"`
}

type flagz struct {
	zMeta
	Flags map[string]string `json:"flags"`
}

func (l *life) zMeta(kind string) zMeta {
	return zMeta{Kind: kind, APIVersion: zGroup + "/" + zVersion, Metadata: map[string]string{"name": l.Program.Name}}
}

func (l *life) serveStatusz(w http.ResponseWriter, r *http.Request) {
	up := l.clock.Now().Sub(l.started)
	s := statusz{
		zMeta: l.zMeta("Statusz"), StartTime: l.started.UTC().Truncate(time.Second), UptimeSeconds: int64(up.Seconds()),
		GoVersion: runtime.Version(), BinaryVersion: l.Version, Paths: l.paths(),
	}
	l.answerAs(w, r, s, func() string {
		return fmt.Sprintf("Started: %s\nUp: %d hr %02d min %02d sec\nGo version: %s\nBinary version: %s (%s)\n\nPaths: %s\n",
			s.StartTime.Format(time.UnixDate), int(up.Hours()), int(up.Minutes())%60, int(up.Seconds())%60, s.GoVersion, s.BinaryVersion, builtFrom(),
			strings.Join(s.Paths, " "))
	})
}

func (l *life) serveFlagz(w http.ResponseWriter, r *http.Request) {
	f := flagz{l.zMeta("Flagz"), l.flagValues()}
	l.answerAs(w, r, f, func() string {
		var text strings.Builder
		for _, name := range slices.Sorted(maps.Keys(f.Flags)) {
			fmt.Fprintf(&text, "%s=%s\n", name, f.Flags[name])
		}
		return text.String()
	})
}

// flagValues are the flags as they are now. None of them is a secret, but a URL may carry one.
func (l *life) flagValues() map[string]string {
	values := map[string]string{}
	l.flags.VisitAll(func(f *flag.Flag) {
		value := f.Value.String()
		if at, err := url.Parse(value); err == nil && at.User != nil {
			value = at.Redacted()
		}
		values[f.Name] = value
	})
	return values
}

// answerAs gives one thing in the form that was asked for: text, or JSON where the kind and the version are named as the
// components want it.
func (l *life) answerAs(w http.ResponseWriter, r *http.Request, value any, text func() string) {
	kind := "Flagz"
	if _, ok := value.(statusz); ok {
		kind = "Statusz"
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch form := wanted(r.Header.Get("Accept"), kind); form {
	case "text":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintf(w, "\n%s %s\n%s\n\n%s", l.Program.Name, strings.ToLower(kind), zWarning, text())
	case "json":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	default:
		http.Error(w, fmt.Sprintf("there is text/plain, and application/json;g=%s;v=%s;as=%s", zGroup, zVersion, kind), http.StatusNotAcceptable)
	}
}

// wanted reads an Accept header: text, json, or nothing that there is.
func wanted(accept, kind string) string {
	if strings.TrimSpace(accept) == "" {
		return "text"
	}
	for part := range strings.SplitSeq(accept, ",") {
		media, parameters, err := mime.ParseMediaType(strings.TrimSpace(part))
		switch {
		case err != nil:
		case media == "text/plain", media == "text/*", media == "*/*", media == "text/html":
			return "text"
		case media == "application/json" && parameters["g"] == zGroup && parameters["v"] == zVersion && parameters["as"] == kind:
			return "json"
		}
	}
	return ""
}
