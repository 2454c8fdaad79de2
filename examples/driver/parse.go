// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
)

// errDone says that all that was asked for has been told.
var errDone = errors.New("nothing more to do")

// parse reads the arguments; help and version go to out.
func parse(args []string, out io.Writer) (*settings, error) {
	o, wantsVersion := newOptions(), false
	flags := flag.NewFlagSet("driver", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.AddFlags(flags)
	flags.BoolVar(&wantsVersion, "version", false, "print the version and exit")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, "A small CSI driver that keeps its volumes in a folder. Its flags, of which --endpoint and --state are needed:")
		flags.SetOutput(out)
		flags.PrintDefaults()
		return nil, errDone
	case err != nil:
		return nil, fmt.Errorf("%w; see --help", err)
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	case wantsVersion:
		fmt.Fprintln(out, "driver", version)
		return nil, errDone
	}
	return o.Settle()
}

// repeated is a flag that may be given more than once.
type repeated []string

func (r *repeated) String() string { return strings.Join(*r, " ") }

func (r *repeated) Set(v string) error {
	*r = append(*r, v)
	return nil
}

// socketPath accepts the forms in which CSI components name a unix socket.
func socketPath(endpoint string) (string, error) {
	path := endpoint
	if scheme, rest, found := strings.Cut(endpoint, ":"); found {
		if scheme != "unix" {
			return "", fmt.Errorf("%q is not a unix socket", endpoint)
		}
		path = strings.TrimPrefix(rest, "//")
	}
	if path == "" {
		return "", fmt.Errorf("%q has no path", endpoint)
	}
	return path, nil
}

func readTopology(file string, nodes []string) (map[string]backend.Segment, error) {
	topology := map[string]backend.Segment{}
	if file != "" {
		if err := readJSON(file, &topology); err != nil {
			return nil, fmt.Errorf("--topology: %w", err)
		}
	}
	for _, text := range nodes {
		node, pairs, found := strings.Cut(text, "=")
		if !found || node == "" {
			return nil, fmt.Errorf("--node-topology: %q is not like node1=zone=a,rack=r1", text)
		}
		segment := backend.Segment{}
		for pair := range strings.SplitSeq(pairs, ",") {
			k, v, found := strings.Cut(pair, "=")
			if !found || k == "" || v == "" {
				return nil, fmt.Errorf("--node-topology: %q is not like node1=zone=a,rack=r1", text)
			}
			segment[k] = v
		}
		topology[node] = segment
	}
	for node, segment := range topology {
		if len(segment) == 0 {
			return nil, fmt.Errorf("node %q has no segment", node)
		}
	}
	return topology, nil
}

func readPools(file string) ([]backend.Pool, error) {
	var lines []struct {
		Segment           backend.Segment `json:"segment"`
		Capacity          string          `json:"capacity"`
		MaximumVolumeSize string          `json:"maximumVolumeSize"`
	}
	if err := readJSON(file, &lines); err != nil {
		return nil, fmt.Errorf("--pools: %w", err)
	}
	seen := map[string]bool{}
	var pools []backend.Pool
	for _, l := range lines {
		pool := backend.Pool{Segment: l.Segment}
		key := pool.Segment.Key()
		if seen[key] {
			return nil, fmt.Errorf("--pools: two pools for {%s}", key)
		}
		seen[key] = true
		var err error
		if pool.Capacity, err = parseSize(l.Capacity); err != nil {
			return nil, fmt.Errorf("--pools: {%s}: capacity: %w", key, err)
		}
		if l.MaximumVolumeSize != "" {
			if pool.MaximumVolumeSize, err = parseSize(l.MaximumVolumeSize); err != nil {
				return nil, fmt.Errorf("--pools: {%s}: maximumVolumeSize: %w", key, err)
			}
		}
		pools = append(pools, pool)
	}
	if len(pools) == 0 {
		return nil, fmt.Errorf("--pools: %s has none", file)
	}
	return pools, nil
}

func readJSON(file string, into any) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return nil
}

// readSecrets never repeats a value in its errors.
func readSecrets(given []string) (map[string]string, error) {
	secrets := map[string]string{}
	for i, text := range given {
		lines := text
		if !strings.Contains(text, "=") {
			content, err := os.ReadFile(text)
			if err != nil {
				return nil, fmt.Errorf("--require-secrets: %w", err)
			}
			lines = string(content)
		}
		for line := range strings.Lines(lines) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			k, v, found := strings.Cut(line, "=")
			if !found || k == "" {
				return nil, fmt.Errorf("--require-secrets: number %d has a line that is not key=value", i+1)
			}
			secrets[k] = v
		}
	}
	return secrets, nil
}

// parseSize reads a number of bytes with the suffixes of Kubernetes that are
// powers of two.
func parseSize(text string) (int64, error) {
	factor := int64(1)
	number := text
	for i, suffix := range []string{"Ki", "Mi", "Gi", "Ti", "Pi"} {
		if n, ok := strings.CutSuffix(text, suffix); ok {
			number, factor = n, int64(1)<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is not a size such as 10Gi", text)
	}
	return n * factor, nil
}

// readKubelets reads node=folder pairs.
func readKubelets(pairs []string) (map[string]string, error) {
	kubelets := map[string]string{}
	for _, text := range pairs {
		node, dir, found := strings.Cut(text, "=")
		if !found || node == "" || !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("--kubelet: %q is not of the form node=/absolute/path", text)
		}
		if kubelets[node] != "" {
			return nil, fmt.Errorf("--kubelet: node %q is there twice", node)
		}
		kubelets[node] = dir
	}
	return kubelets, nil
}
