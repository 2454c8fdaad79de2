// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

// TestMissingIsWarnedOf: who sets a detail of what is not there believes that it is. Catches silence, and a warning about the defaults that
// stand in manifests of old.
func TestMissingIsWarnedOf(t *testing.T) {
	for args, want := range map[string]int{"": 0, "--fly-height=1 --fly-time=1m": 0, "--fly-height=7": 1, "--fly-height=7 --fly-time=2m": 2} {
		p := newProcess(sample(), &bytes.Buffer{}, &bytes.Buffer{})
		if err := p.flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		var log heard
		warnMissing(klog.FromContext(log.context(t.Context())), p.flags, p.Missing)
		if len(log.lines) != want || log.count("this build does not have flying yet") != want || log.count("remove it") != want {
			t.Errorf("%q: %q", args, log.lines)
		}
	}
}

// TestEachFlagSaysWhatItWants: without a value, and with one of another kind, each flag is told with what to write.
func TestEachFlagSaysWhatItWants(t *testing.T) {
	newProcess(sample(), &bytes.Buffer{}, &bytes.Buffer{}).flags.VisitAll(func(f *flag.Flag) {
		_, isRetired := f.Value.(*retired)
		tries := map[string]string{}
		if kind := typeOf(f); kind != "bool" {
			tries["--"+f.Name] = "--" + f.Name + ": needs a value; "
		}
		if kind := typeOf(f); kind != "string" && !isRetired {
			tries["--"+f.Name+"=some"] = "--" + f.Name + "=some: "
		}
		for argument, want := range tries {
			var stdout, stderr bytes.Buffer
			code := Main(t.Context(), sample(), []string{"sample", argument}, &stdout, &stderr)
			got, told := strings.CutPrefix(stderr.String(), "sample: "+want)
			if remedy := strings.HasPrefix(got, "use ") || strings.HasPrefix(got, "write ") || strings.HasPrefix(got, "leave the flag out: ") || strings.HasSuffix(got, "; leave the flag out\n"); code != exitUsage || !told || !remedy || strings.Count(got, "\n") != 1 {
				t.Errorf("%s: exit %d, %q", argument, code, stderr.String())
			}
		}
	})
}
