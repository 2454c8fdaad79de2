// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
)

func settle(args ...string) (*settings, error) {
	o := newOptions()
	fs := flag.NewFlagSet("driver", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	o.AddFlags(fs)
	if err := fs.Parse(append([]string{"--endpoint=unix:///csi.sock", "--state=/state"}, args...)); err != nil {
		return nil, err
	}
	return o.Settle()
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestSettings(t *testing.T) {
	s, err := settle("--topology="+file(t, `{"n2": {"zone": "b"}, "n3": {"zone": "b"}}`), "--node-topology=n1=zone=a,rack=r1",
		"--pool-capacity=2Gi", "--require-secrets=a=b=c", "--require-secrets="+file(t, "# comment\n\nk=v\n"))
	must(t, err)
	if diff := cmp.Diff(map[string]backend.Segment{
		"n1": {"zone": "a", "rack": "r1"}, "n2": {"zone": "b"}, "n3": {"zone": "b"},
	}, s.server.Topology); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]backend.Pool{
		{Segment: backend.Segment{"zone": "a", "rack": "r1"}, Capacity: 2 << 30},
		{Segment: backend.Segment{"zone": "b"}, Capacity: 2 << 30},
	}, s.backend.Pools); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "b=c", "k": "v"}, s.server.Secrets); diff != "" {
		t.Error(diff)
	}
	if s.server.Node != "n1" || s.endpoint != "/csi.sock" {
		t.Errorf("node %q, endpoint %q", s.server.Node, s.endpoint)
	}
	s, err = settle("--pools=" + file(t, `[{"segment": {"zone": "a"}, "capacity": "10Gi", "maximumVolumeSize": "5Mi"}]`))
	must(t, err)
	want := []backend.Pool{{Segment: backend.Segment{"zone": "a"}, Capacity: 10 << 30, MaximumVolumeSize: 5 << 20}}
	if diff := cmp.Diff(want, s.backend.Pools); diff != "" {
		t.Error(diff)
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"no endpoint":         {"--endpoint="},
		"not a unix socket":   {"--endpoint=tcp://localhost:1"},
		"control without end": {"--control=unix://"},
		"no name":             {"--name="},
		"topology file":       {"--topology=/does/not/exist"},
		"topology text":       {"--node-topology=n1"},
		"topology pair":       {"--node-topology=n1=zone"},
		"empty segment":       {"--topology=" + file(t, `{"n1": {}}`)},
		"pools of nothing":    {"--pools=" + file(t, `[]`)},
		"pool of no size":     {"--pools=" + file(t, `[{"segment": {"zone": "a"}}]`)},
		"pool twice":          {"--pools=" + file(t, `[{"capacity": "1"}, {"capacity": "1"}]`)},
		"pool with a typo":    {"--pools=" + file(t, `[{"capazity": "1"}]`)},
		"size":                {"--minimum-size=1G"},
		"size too large":      {"--pool-capacity=9999999Pi"},
		"mount":               {"--mount=glue"},
		"capability":          {"--capabilities=-FLY"},
		"secret file":         {"--require-secrets=/does/not/exist"},
		"duration":            {"--snapshot-ready-after=-1s"},
	} {
		if _, err := settle(args...); err == nil {
			t.Errorf("%s: %v was accepted", name, args)
		}
	}
	_, err := settle("--require-secrets=" + file(t, "k=v\nS3CR3T\n"))
	if err == nil || strings.Contains(err.Error(), "S3CR3T") {
		t.Errorf("a secret line without a key: %v", err)
	}
}

func TestArguments(t *testing.T) {
	full := []string{"--endpoint=unix:///x/s", "--state=/x/state"}
	for _, tt := range []struct {
		name       string
		args       []string
		out, wrong string
	}{
		{"good ones", full, "", ""},
		{"help", []string{"--help"}, "-node-topology", "nothing more to do"},
		{"version", []string{"--version"}, "driver unknown\n", "nothing more to do"},
		{"an unknown flag", append([]string{"--nonsense"}, full...), "", "flag provided but not defined: -nonsense; see --help"},
		{"an argument", append(full, "more"), "", `unexpected argument "more"; see --help`},
		{"nothing", nil, "", "--endpoint and --state are needed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			_, err := parse(tt.args, &out)
			if (err == nil) != (tt.wrong == "") || err != nil && err.Error() != tt.wrong {
				t.Errorf("error %v, want %q", err, tt.wrong)
			}
			if !strings.Contains(out.String(), tt.out) || tt.out == "" && out.Len() > 0 {
				t.Errorf("said %q, want %q in it", out.String(), tt.out)
			}
		})
	}
}

func TestSocketsComeFirst(t *testing.T) {
	dir := t.TempDir()
	if err := prepareSockets(filepath.Join(dir, "a", "b", "s"), ""); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "a", "b")); err != nil || info.Mode().Perm()&0o027 != 0 {
		t.Errorf("the folder is %v, %v", info, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, socket := range []string{filepath.Join(file, "s"), filepath.Join(dir, strings.Repeat("x", 120))} {
		s := &settings{endpoint: socket, backend: backend.Options{Dir: filepath.Join(dir, "state")}}
		if err := run(t.Context(), s); err == nil || !strings.Contains(err.Error(), socket) {
			t.Errorf("%s: %v", socket, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "state")); err == nil {
			t.Errorf("%s: there is a state all the same", socket)
		}
	}
}

// Catches a driver that removes any socket it finds: the one that listened there goes on, unreachable, and takes the socket of the
// second with it when it ends.
func TestSocketOfAnotherProcessStays(t *testing.T) {
	dir, err := os.MkdirTemp("", "d")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	first, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := listen(path); err == nil {
		_ = second.Close()
		t.Fatal("two listen at one socket")
	} else if !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	// As a kill leaves it.
	first.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = first.Close()
	second, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = second.Close()
}

func TestKubelets(t *testing.T) {
	s, err := settle("--kubelet=a=/var/lib/kubelet", "--kubelet=b=/b")
	must(t, err)
	if diff := cmp.Diff(map[string]string{"a": "/var/lib/kubelet", "b": "/b"}, s.kubelets); diff != "" || !s.server.Devices {
		t.Errorf("devices %t, %s", s.server.Devices, diff)
	}
	if s, err = settle(); err != nil || s.server.Devices {
		t.Errorf("devices without a kubelet: %v", err)
	}
	for _, args := range [][]string{{"--kubelet=/var/lib/kubelet"}, {"--kubelet=a=relative"}, {"--kubelet=a=/x", "--kubelet=a=/y"}, {"--block=tape"}} {
		if _, err := settle(args...); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}
