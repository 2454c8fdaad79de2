// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// buildConfig finds the API server: by file, by URL, or as a pod does.
func buildConfig(o *Options, agent string) (*rest.Config, error) {
	path, origin := configPath(o)
	config, err := fetchConfig(path, o.Master)
	switch {
	case errors.Is(err, rest.ErrNotInCluster):
		return nil, fatal("no API server: outside of a cluster set --kubeconfig or the KUBECONFIG variable to a file that says how to reach it")
	case path != "" && clientcmd.IsEmptyConfig(err):
		return nil, fatal("no API server: %s names %s, which says nothing about a cluster: use a file that kubectl takes, too", origin, path)
	case err != nil && path != "":
		return nil, fatal("no API server: %s names %s: %w; use a file that kubectl takes, too", origin, path, err)
	case err != nil:
		return nil, fatal("no API server: %w", err)
	}
	// The API server would compress every page of a first list: on both sides that costs more time than the network takes
	// for what it saves.
	config.DisableCompression = true
	config.QPS, config.Burst = float32(o.KubeAPIQPS), o.KubeAPIBurst
	if o.KubeAPIQPS <= 0 {
		config.QPS = -1
	}
	config.UserAgent = agent
	return config, nil
}

// checkMaster refuses what client-go would go on with, or tell in words that name no flag.
func checkMaster(master string) error {
	if master == "" {
		return nil
	}
	text := master
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil {
		return nil
	}
	if _, after, found := strings.Cut(master, "@"); found {
		master = "…@" + after // what stands before it may be a password
	}
	return fmt.Errorf("--master=%s: use a URL such as https://10.0.0.1:6443; who logs in stands in the kubeconfig", master)
}

func fetchConfig(path, master string) (*rest.Config, error) {
	if path == "" && master == "" {
		return rest.InClusterConfig()
	}
	files := filepathList(path)
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return nil, err
		}
	}
	return loaderOf(files, master).ClientConfig()
}

func loaderOf(files []string, master string) clientcmd.ClientConfig {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: files, WarnIfAllMissing: true}
	overrides := &clientcmd.ConfigOverrides{}
	overrides.ClusterInfo.Server = master
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// configPath is the file that says how to reach the API server, empty for none, and who names it.
func configPath(o *Options) (path, origin string) {
	path, origin = o.Kubeconfig, "--kubeconfig"
	if fromEnv := os.Getenv("KUBECONFIG"); fromEnv != "" && (path == "" || o.EnvironmentFirst) {
		path, origin = fromEnv, "the KUBECONFIG variable"
	}
	return path, origin
}

// configWarnings speaks of what decides unseen which cluster is worked on.
func configWarnings(o *Options) []string {
	var warnings []string
	if o.Master != "" && !strings.Contains(o.Master, "://") {
		warnings = append(warnings, fmt.Sprintf("--master=%s has no scheme, and is asked by http, without TLS; say https:// before it if that is what it speaks", o.Master))
	}
	if o.HTTP.Pages && o.HTTP.MetricsPath == "/" && o.HTTP.Address() != "" {
		warnings = append(warnings, "--metrics-path=/: the metrics take the place of the page for people; use another path such as /metrics, or --status-pages=false")
	}
	fromEnv := os.Getenv("KUBECONFIG")
	if fromEnv == "" || o.Kubeconfig == "" || filepath.Clean(fromEnv) == filepath.Clean(o.Kubeconfig) {
		return warnings
	}
	_, origin := configPath(o)
	return append(warnings, fmt.Sprintf("the KUBECONFIG variable names %s and --kubeconfig names %s: %s counts; unset the variable or leave out the flag", fromEnv, o.Kubeconfig, origin))
}

// contextNamespace is the namespace in which the user works, as kubectl takes it.
func contextNamespace(o *Options) string {
	path, _ := configPath(o)
	if path != "" {
		if namespace, _, err := loaderOf(filepathList(path), o.Master).Namespace(); err == nil && namespace != "" {
			return namespace
		}
	}
	return leaseNamespace("", serviceAccountNamespace)
}

// filepathList splits a KUBECONFIG that names several files, as kubectl does.
func filepathList(path string) []string {
	var files []string
	for file := range strings.SplitSeq(path, string(os.PathListSeparator)) {
		if file != "" {
			files = append(files, file)
		}
	}
	return files
}

// leaseConfig is the way of the elector: limits of its own, so that no burst of work delays a renewal,
// and a timeout that leaves time for a second try before the deadline.
func leaseConfig(config *rest.Config, renewDeadline time.Duration) *rest.Config {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst, own.RateLimiter = -1, 0, nil
	own.Timeout = max(time.Second, renewDeadline/2)
	return own
}
