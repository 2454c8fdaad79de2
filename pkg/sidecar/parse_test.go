// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	logsapi "k8s.io/component-base/logs/api/v1"
)

func TestMain(m *testing.M) {
	// Programs configure logging once; tests start many in one process.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// sample is a program with a flag of each sort.
func sample() Program {
	var color string
	return Program{
		Name: "sample", Version: "v1.2.3", Component: "sample %s", Manifest: "deploy/sample/rbac.yaml", Options: NewOptions(),
		Groups: []FlagGroup{{"Colors", func(fs *flag.FlagSet) { fs.StringVar(&color, "color", "red", "`name` of the color") }}},
		Gates: []Gate{
			{Name: "Old", Stage: GA, Default: true}, {Name: "New", Stage: Alpha}, {Name: "Nearly", Stage: Beta},
			{Name: "Absent", Stage: GA, Default: true, Missing: "absence"}, {Name: "Gone", Retired: true},
			{Name: "Fixed", Stage: Alpha, Default: true, Fixed: "it is always so"},
		},
		Missing: []Missing{{
			Feature:  "flying",
			Switches: []Flag{{Name: "fly", Default: false, Usage: "fly"}},
			Details:  []Flag{{Name: "fly-height", Default: uint(1), Usage: "how high"}, {Name: "fly-time", Default: time.Minute, Usage: "how long"}},
		}},
		Retired: []Flag{{Name: "walk", Default: false, Usage: "retired"}, {Name: "walk-to", Default: "", Usage: "retired"}},
		Presets: map[string]map[string]string{"blue-sample": {"color": "blue", "csi-address": ""}},
		WithoutDriver: func() error {
			if color == "blue" {
				return nil
			}
			return errors.New("--csi-address must not be empty with --color=" + color)
		},
		Validate: func() error {
			if color == "" {
				return errors.New("--color must not be empty: use red")
			}
			return nil
		},
		Setup: func(context.Context, *Env) ([]Runnable, error) { return nil, nil },
	}
}

// What is wrong with the arguments is told in one line that names the flag and the way out.
func TestExitCodes(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, c := range []struct {
		args string
		code int
		text string // part of the one line on stderr
	}{
		{"--version", 0, ""},
		{"--help", 0, ""},
		{"-h", 0, ""},
		{"--nope", 2, "--nope: there is no such flag"},
		{"--timeout", 2, "--timeout: needs a value; use a duration such as 90s or 5m; the default is 10s"},
		{"--timeout=fast", 2, "--timeout=fast: use a duration"},
		{"--worker-threads=-1", 2, "--worker-threads=-1: use a whole number from 0 up"},
		{"--v=x", 2, "--v=x: use a whole number from 0 up; the default is 0"},
		{"--v=-1", 2, "--v=-1: use a whole number from 0 up; the default is 0"},
		{"--leader-election=perhaps", 2, "--leader-election=perhaps: use true or false"},
		{"--leader-election true", 2, `argument "true"`},
		{"--leader-election-labels=a=b", 2, "not of the form key:value"},
		{"--leader-election-labels=a:b:c", 2, "not of the form key:value"},
		{"--automaxprocs=perhaps", 2, "--automaxprocs=perhaps: use true or false"},
		{"--feature-gates=Unheard=true", 255, "--feature-gates=Unheard=true: there is no such gate here"},
		{"--feature-gates=Old=perhaps", 255, "write Old=true or Old=false"},
		{"--feature-gates=Old", 255, "write Old=true or Old=false"},
		{"--feature-gates=Absent=true", 255, "this build does not have absence yet"},
		{"--kube-api-qps=NaN", 2, "--kube-api-qps=NaN: use a number; the default is -1"},
		{"--kube-api-qps=-inf", 2, "--kube-api-qps=-Inf: use a number"},
		{"--color", 2, "--color: needs a value; write --color=name: name of the color"},
		{"--leader-election-labels", 2, "--leader-election-labels: needs a value; write --leader-election-labels=labels: labels that"},
		{"--walk-to", 2, "--walk-to: needs a value; leave the flag out: retired"},
		{"--log-json-info-buffer-size", 2, "needs a value; leave the flag out: accepted for old manifests"},
		{"-x", 2, ": -x: there is no such flag"},
		{"--vmodule=a=x", 2, "--vmodule=a=x: use pattern=N,pattern=N with whole numbers"},
		{"--feature-gates==true", 255, "--feature-gates==true: write Name=true or Name=false"},
		{"--master=::bad::", 1, "--master=::bad::: use a URL such as https://10.0.0.1:6443"},
		{"--master=ftp://here", 1, "--master=ftp://here: use a URL"},
		{"--master=https://", 1, "--master=https://: use a URL"},
		{"--master=https://user:secret@here", 1, ": --master=…@here: use a URL"},
		{"--kubeconfig=/dev/null", 255, "--kubeconfig names /dev/null, which says nothing about a cluster: use a file that kubectl takes"},
		{"--kubeconfig=/dev", 255, "is a directory; use a file that kubectl takes"},
		{"--logging-format=xml", 1, ": --logging-format=xml: use text or json"},
		{"--log-flush-frequency=0", 1, "--log-flush-frequency=0s: use a duration such as 5s"},
		{"--vmodule=a=3 --logging-format=json", 1, "--vmodule=a=3: it is for --logging-format=text only"},
		{"--log-text-split-stream", 1, "--log-text-split-stream=true: it cannot be enabled, as the sidecars have no feature gate LoggingAlphaOptions; leave the flag out"},
		{"--log-json-split-stream=true", 1, "--log-json-split-stream=true: it cannot be enabled"},
		{"--log-json-info-buffer-size=1Ki", 1, "--log-json-info-buffer-size=1Ki: it cannot be enabled"},
		{"--log-text-info-buffer-size=much", 2, "--log-text-info-buffer-size=much: it cannot be enabled"},
		{"--log-text-info-buffer-size=0 --log-json-split-stream=false --kubeconfig=/does/not/exist", 255, "/does/not/exist"},
		{"--http-endpoint=8080", 255, "--http-endpoint=8080: write host:port, such as :8080"},
		{"--http-endpoint=:70000", 255, "--http-endpoint=:70000: write host:port"},
		{"--metrics-address=here", 255, "--metrics-address=here: write host:port"},
		{"--leader-election-namespace=Team_A", 1, "--leader-election-namespace=Team_A: no namespace can have this name"},
		{"--leader-election --leader-election-labels=a:b,c:d_", 1, "--leader-election-labels=c:d_: this cannot be a label"},
		{"--fly", 1, "--fly=true: this build does not have flying yet"},
		{"--http-endpoint=:1 --metrics-address=:2", 1, "use --http-endpoint alone"},
		{"--metrics-path=metrics", 1, "begins with a slash"},
		{"--enable-pprof", 1, "set --http-endpoint as well"},
		{"--csi-address=", 1, "--csi-address must not be empty with --color=red"},
		{"--csi-address=tcp://1.2.3.4", 1, "--csi-address=tcp://1.2.3.4: use an absolute path"},
		{"--timeout=0", 1, "--timeout=0s: calls need time"},
		{"--worker-threads=0", 1, "--worker-threads=0"},
		{"--retry-interval-start=0", 1, "--retry-interval-start=0s"},
		{"--retry-interval-start=10m", 1, "use at least --retry-interval-start, which is 10m0s"},
		{"--resync-period=-1s", 1, "or 0 for never"},
		{"--kube-api-qps=5 --kube-api-burst=0", 1, "--kube-api-burst=0"},
		{"--leader-election --leader-election-lease-duration=10s", 1, "use more than --leader-election-renew-deadline, which is 10s"},
		{"--leader-election --leader-election-renew-deadline=6s", 1, "use more than 6s"},
		{"--leader-election --leader-election-retry-period=0", 1, "--leader-election-retry-period=0s"},
		{"--color=", 1, "--color must not be empty: use red"},
		{"", 255, "set --kubeconfig or the KUBECONFIG variable"},
		{"--kubeconfig=/does/not/exist", 255, "--kubeconfig names /does/not/exist"},
		// Retired flags and gates, and details of what is missing, only warn; so the next thing that fails does.
		{"--walk --walk-to=x --logtostderr --alsologtostderr=true --fly-height=7 --feature-gates=Gone=true,Fixed=false,Absent=false", 255, "set --kubeconfig"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := Main(t.Context(), sample(), append([]string{"/bin/sample"}, strings.Fields(c.args)...), &stdout, &stderr)
			if code != c.code || !strings.Contains(stderr.String(), c.text) {
				t.Errorf("exit %d, want %d; stderr: %s", code, c.code, stderr.String())
			}
			if lines := strings.Count(stderr.String(), "\n"); c.code != 0 && (lines != 1 || !strings.HasPrefix(stderr.String(), "sample: ")) {
				t.Errorf("not one line: %s", stderr.String())
			}
			if c.code == 0 && (stderr.Len() > 0 || stdout.Len() == 0) {
				t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
			}
		})
	}
}

func TestVersionIsLastOfTheFirstChecks(t *testing.T) {
	for args, want := range map[string]string{
		"--version":                            "other v1.2.3 (" + runtime.Version(),
		"--version --fly --csi-address=nope":   "other v1.2.3 (", // what is checked later does not matter
		"--version --feature-gates=Unheard=on": "",
	} {
		var stdout, stderr bytes.Buffer
		Main(t.Context(), sample(), append([]string{"/usr/bin/other"}, strings.Fields(args)...), &stdout, &stderr)
		if got := stdout.String(); !strings.HasPrefix(got, want) || want == "" && got != "" || strings.Count(got, "\n") > 1 {
			t.Errorf("%s: %q, want %q (%s)", args, stdout.String(), want, stderr.String())
		}
	}
}

func TestOtherNamePresetsFlags(t *testing.T) {
	for _, c := range []struct{ args, color, address string }{
		{"/bin/sample", "red", "/run/csi/socket"},
		{"/bin/blue-sample", "blue", ""},
		{"/bin/blue-sample --csi-address=/run/other", "blue", "/run/other"},
		{"/bin/blue-sample --color=green --csi-address=/run/other", "green", "/run/other"},
	} {
		p := newProcess(sample(), &bytes.Buffer{}, &bytes.Buffer{})
		if _, err := p.parse(strings.Fields(c.args)); err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
		if got := p.flags.Lookup("color").Value.String(); got != c.color || p.Options.CSIAddress != c.address {
			t.Errorf("%s: color %q, address %q", c.args, got, p.Options.CSIAddress)
		}
	}
	for name, want := range map[string]string{"/bin/sample": "(default red)", "/bin/blue-sample": "(default blue)"} {
		var help bytes.Buffer
		p := newProcess(sample(), &help, &bytes.Buffer{})
		if done, err := p.parse([]string{name, "--help"}); !done || err != nil || !strings.Contains(help.String(), want) {
			t.Errorf("the help of %s is without %q: %v\n%s", name, want, err, help.String())
		}
	}
}

func TestGates(t *testing.T) {
	for args, want := range map[string]string{
		"":                                   "Old Fixed",
		"Old=false":                          "Fixed",
		"New=true,Old=false":                 "New Fixed",
		"AllAlpha=true":                      "Old New Fixed",
		"AllAlpha=true,New=false":            "Old Fixed",
		"AllBeta=true":                       "Old Nearly Fixed",
		"Fixed=false,Gone=true,Absent=false": "Old Fixed",
		" Old = false , New=T":               "New Fixed",
	} {
		g := newGates(sample().Gates)
		// Repeats of the flag add up.
		for item := range strings.SplitSeq(args, ",") {
			_ = g.Set(item)
		}
		if _, err := g.apply(); err != nil {
			t.Errorf("%s: %v", args, err)
		}
		var on []string
		for _, gate := range sample().Gates {
			if g.Enabled(gate.Name) {
				on = append(on, gate.Name)
			}
		}
		if got := strings.Join(on, " "); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
	g := newGates(sample().Gates)
	_ = g.Set("Gone=true,Fixed=false")
	if warnings, _ := g.apply(); len(warnings) != 2 {
		t.Errorf("warnings: %q", warnings)
	}
}

func TestLabels(t *testing.T) {
	var l labels
	if err := l.Set("a:b, c:d"); err != nil || l.String() != "a:b,c:d" {
		t.Errorf("%v %v", l.String(), err)
	}
}

func TestTableIsReplacedBetweenItsMarkersOnly(t *testing.T) {
	document := "a\n<!-- flags:sample -->\nstale words\n<!-- /flags -->\nb\n"
	got, found := ReplaceTable(document, "sample", FlagTable(sample()))
	if !found || !strings.HasPrefix(got, "a\n<!-- flags:sample -->\n\n**Colors**") || !strings.HasSuffix(got, "<!-- /flags -->\nb\n") || strings.Contains(got, "stale words") {
		t.Errorf("found %v:\n%s", found, got)
	}
	if again, _ := ReplaceTable(got, "sample", FlagTable(sample())); again != got {
		t.Error("a second time changes it")
	}
	if _, found := ReplaceTable(document, "other", ""); found {
		t.Error("found markers of another program")
	}
	if !strings.Contains(got, "| `--color` | `red` | name of the color |") || !strings.Contains(got, "| `--retry-interval-max` | `5m` |") {
		t.Errorf("rows are missing:\n%s", got)
	}
}

func TestListKnowsTypes(t *testing.T) {
	list := FlagList(sample())
	for _, want := range []Declared{
		{"color", "string", "red"}, {"timeout", "duration", "10s"}, {"worker-threads", "uint", "10"}, {"kube-api-qps", "float", "-1"},
		{"leader-election", "bool", "false"}, {"kube-api-burst", "int", "10"}, {"logtostderr", "bool", "true"}, {"automaxprocs", "bool", "false"},
	} {
		if !slices.Contains(list, want) {
			t.Errorf("%v is not in the list", want)
		}
	}
}

func TestLastWords(t *testing.T) {
	var stderr bytes.Buffer
	p := newProcess(sample(), &bytes.Buffer{}, &stderr)
	p.terminationLog = filepath.Join(t.TempDir(), "log")
	if code := p.exit(errors.Join(errors.New("--a: wrong"), errors.New("--b: wrong"))); code != exitFailure || stderr.String() != "sample: --a: wrong; --b: wrong\n" {
		t.Errorf("exit %d, %q", code, stderr.String())
	}
	if code := p.exit(&lastWords{errors.New("the driver is another")}); code != exitFailure {
		t.Errorf("exit %d", code)
	}
	if _, err := os.Stat(p.terminationLog); err == nil {
		t.Error("a file was made where there was none")
	}
	if err := os.WriteFile(p.terminationLog, []byte("what an earlier container wrote"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.exit(&lastWords{errors.New("the driver is another")})
	if data, _ := os.ReadFile(p.terminationLog); string(data) != "the driver is another\n" {
		t.Errorf("last words: %q", data)
	}
	if !strings.Contains(stderr.String(), "sample: the driver is another\n") {
		t.Errorf("stderr: %q", stderr.String())
	}
}
