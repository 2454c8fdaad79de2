// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
)

// Options are the flags that both programs have.
type Options struct {
	CSIAddress string
	Timeout    time.Duration
	// MaxParallelCalls is 0 where the limit adapts.
	MaxParallelCalls uint

	Kubeconfig   string
	Master       string
	KubeAPIQPS   float64
	KubeAPIBurst int
	ResyncPeriod time.Duration
	// EnvironmentFirst makes the KUBECONFIG variable win over --kubeconfig.
	EnvironmentFirst bool

	WorkerThreads      uint
	RetryIntervalStart time.Duration
	RetryIntervalMax   time.Duration

	Election Election
	HTTP     HTTPOptions
}

// Election are the flags of leader election.
type Election struct {
	Enabled       bool
	Namespace     string
	LeaseDuration time.Duration
	RenewDeadline time.Duration
	RetryPeriod   time.Duration
	Labels        map[string]string
}

// HTTPOptions are the flags of the HTTP endpoint.
type HTTPOptions struct {
	Endpoint       string
	MetricsAddress string
	MetricsPath    string
	Pprof          bool
	// Pages are those for people.
	Pages bool
}

// Address is where to listen, or empty.
func (h *HTTPOptions) Address() string {
	if h.Endpoint != "" {
		return h.Endpoint
	}
	return h.MetricsAddress
}

// NewOptions are the defaults of both programs; each sets its own on top.
func NewOptions() *Options {
	return &Options{
		CSIAddress: "/run/csi/socket", Timeout: 10 * time.Second,
		// The API server shares its capacity out by itself (API priority and fairness); a limit of our own
		// only makes a user's hundredth claim wait for nothing.
		KubeAPIQPS: -1, KubeAPIBurst: 10, ResyncPeriod: 15 * time.Minute,
		WorkerThreads: 10, RetryIntervalStart: time.Second, RetryIntervalMax: 5 * time.Minute,
		Election: Election{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 5 * time.Second},
		HTTP:     HTTPOptions{MetricsPath: "/metrics", Pages: true},
	}
}

func (o *Options) groups() []FlagGroup {
	return []FlagGroup{
		{titleDriver, o.addDriver}, {titleServer, o.addServer}, {"Work", o.addWork},
		{"Leader election", o.Election.add}, {"HTTP endpoint", o.HTTP.add},
	}
}

func (o *Options) addDriver(fs *flag.FlagSet) {
	fs.StringVar(&o.CSIAddress, "csi-address", o.CSIAddress, "`socket` of the CSI driver: an absolute path or unix:///absolute/path")
	fs.DurationVar(&o.Timeout, "timeout", o.Timeout, "deadline of each call to the driver")
	fs.UintVar(&o.MaxParallelCalls, "max-parallel-calls", o.MaxParallelCalls, "fixed limit of parallel calls of one kind to the driver; 0 lets it adapt to what the driver bears, up to --worker-threads")
}

func (o *Options) addServer(fs *flag.FlagSet) {
	order := "the KUBECONFIG variable counts where this is empty"
	if o.EnvironmentFirst {
		order = "the KUBECONFIG variable, where set, wins over this"
	}
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "`file` that says how to reach the API server; "+order+", and without either the pod's own service account is used")
	fs.StringVar(&o.Master, "master", o.Master, "`URL` of the API server, instead of the one in the kubeconfig")
	fs.Float64Var(&o.KubeAPIQPS, "kube-api-qps", o.KubeAPIQPS, "requests per second to the API server; 0 or less sets no limit of ours and leaves fairness to the API server")
	fs.IntVar(&o.KubeAPIBurst, "kube-api-burst", o.KubeAPIBurst, "requests that may exceed --kube-api-qps at once, when that sets a limit")
	fs.DurationVar(&o.ResyncPeriod, "resync-period", o.ResyncPeriod, "how often every object is looked at again without having changed; 0 never")
}

func (o *Options) addWork(fs *flag.FlagSet) {
	fs.UintVar(&o.WorkerThreads, "worker-threads", o.WorkerThreads, "how many objects of each kind are worked on at once")
	fs.DurationVar(&o.RetryIntervalStart, "retry-interval-start", o.RetryIntervalStart, "delay before the first new try of an object; each further one doubles it")
	fs.DurationVar(&o.RetryIntervalMax, "retry-interval-max", o.RetryIntervalMax, "longest delay between two tries")
}

func (e *Election) add(fs *flag.FlagSet) {
	fs.BoolVar(&e.Enabled, "leader-election", e.Enabled, "let one of several replicas work; the others wait with warm caches")
	fs.StringVar(&e.Namespace, "leader-election-namespace", e.Namespace, "`namespace` of the lease; empty means the pod's own")
	fs.DurationVar(&e.LeaseDuration, "leader-election-lease-duration", e.LeaseDuration, "how long others wait after the last sign of a leader")
	fs.DurationVar(&e.RenewDeadline, "leader-election-renew-deadline", e.RenewDeadline, "how long a leader tries to renew before it stops working")
	fs.DurationVar(&e.RetryPeriod, "leader-election-retry-period", e.RetryPeriod, "how long each waits between two tries")
	fs.Var((*labels)(&e.Labels), "leader-election-labels", "`labels` that the leader puts on the lease, written key:value,key:value")
}

func (h *HTTPOptions) add(fs *flag.FlagSet) {
	fs.StringVar(&h.Endpoint, "http-endpoint", h.Endpoint, "`host:port` to serve metrics and health on; empty serves nothing")
	fs.StringVar(&h.MetricsAddress, "metrics-address", h.MetricsAddress, "deprecated: `host:port` as with --http-endpoint, without the path of the leader election's health")
	fs.StringVar(&h.MetricsPath, "metrics-path", h.MetricsPath, "`path` of the metrics")
	fs.BoolVar(&h.Pages, "status-pages", h.Pages, "serve a page for people at /, and /statusz and /flagz; they show names of objects and errors, as the logs do")
	fs.BoolVar(&h.Pprof, "enable-pprof", h.Pprof, "serve profiles of the process under /debug/pprof/")
}

// check refuses what could only fail later, and says what to write instead.
func (o *Options) check(withoutDriver func() error) error {
	checkDriver := func() error { return driver.CheckAddress(o.CSIAddress) }
	if o.CSIAddress == "" && withoutDriver != nil {
		checkDriver = withoutDriver
	}
	if err := checkDriver(); err != nil {
		return err
	}
	if err := checkMaster(o.Master); err != nil {
		return err
	}
	if err := o.checkWork(); err != nil {
		return err
	}
	if err := o.HTTP.check(); err != nil {
		return err
	}
	return o.Election.check()
}

func (o *Options) checkWork() error {
	switch {
	case o.Timeout <= 0:
		return fmt.Errorf("--timeout=%v: calls need time, use a duration such as 10s", o.Timeout)
	case o.WorkerThreads == 0:
		return fmt.Errorf("--worker-threads=0: nothing would be done, use 1 or more")
	case o.RetryIntervalStart <= 0:
		return fmt.Errorf("--retry-interval-start=%v: use a duration such as 1s", o.RetryIntervalStart)
	case o.RetryIntervalMax < o.RetryIntervalStart:
		return fmt.Errorf("--retry-interval-max=%v: use at least --retry-interval-start, which is %v", o.RetryIntervalMax, o.RetryIntervalStart)
	case o.ResyncPeriod < 0:
		return fmt.Errorf("--resync-period=%v: use a duration such as 15m, or 0 for never", o.ResyncPeriod)
	case o.KubeAPIQPS > 0 && o.KubeAPIBurst < 1:
		return fmt.Errorf("--kube-api-burst=%d: use 1 or more, since --kube-api-qps sets a limit", o.KubeAPIBurst)
	}
	return nil
}

// metricsPath keeps out what the router would read as a pattern.
var metricsPath = regexp.MustCompile(`^/([-A-Za-z0-9_~][-A-Za-z0-9._~]*/?)*$`)

func (h *HTTPOptions) check() error {
	switch {
	case h.Endpoint != "" && h.MetricsAddress != "":
		return fmt.Errorf("--http-endpoint=%s and --metrics-address=%s exclude each other: use --http-endpoint alone", h.Endpoint, h.MetricsAddress)
	case !metricsPath.MatchString(h.MetricsPath):
		return fmt.Errorf("--metrics-path=%s: use a path that begins with a slash, such as /metrics, of letters, digits, dots, dashes and underscores", h.MetricsPath)
	case slices.Contains(otherPaths, strings.TrimSuffix(h.MetricsPath, "/")) || strings.HasPrefix(h.MetricsPath, profilesPath):
		return fmt.Errorf("--metrics-path=%s: something else is served there, use another one such as /metrics", h.MetricsPath)
	case h.Pprof && h.Address() == "":
		return fmt.Errorf("--enable-pprof: there is no address to serve profiles on, set --http-endpoint as well")
	case h.Address() != "" && !isHostPort(h.Address()):
		return fatal("%s: write host:port, such as :8080 or 127.0.0.1:8080", h.given())
	}
	return nil
}

func isHostPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return false
	}
	// Ports can have names.
	number, err := strconv.Atoi(port)
	return err != nil || number >= 0 && number <= math.MaxUint16
}

// given is the flag that says where to listen.
func (h *HTTPOptions) given() string {
	if h.Endpoint != "" {
		return "--http-endpoint=" + h.Endpoint
	}
	return "--metrics-address=" + h.MetricsAddress
}

// longestLease is what a lease can say.
const longestLease = math.MaxInt32 * time.Second

func (e *Election) check() error {
	// The elector's own rules, told before anything has started and in terms of the flags.
	longestRetry := e.RetryPeriod + e.RetryPeriod/5
	switch {
	case e.Namespace != "" && !isNamespace(e.Namespace):
		return fmt.Errorf("--leader-election-namespace=%s: no namespace can have this name: use lower-case letters, digits and dashes, 63 of them at most", e.Namespace)
	case !e.Enabled:
		return nil
	case e.RetryPeriod <= 0:
		return fmt.Errorf("--leader-election-retry-period=%v: use a duration such as 5s", e.RetryPeriod)
	case e.RenewDeadline <= longestRetry:
		return fmt.Errorf("--leader-election-renew-deadline=%v: use more than %v, which is 1.2 times --leader-election-retry-period", e.RenewDeadline, longestRetry)
	case e.LeaseDuration <= e.RenewDeadline:
		return fmt.Errorf("--leader-election-lease-duration=%v: use more than --leader-election-renew-deadline, which is %v", e.LeaseDuration, e.RenewDeadline)
	case e.LeaseDuration < time.Second, e.LeaseDuration > longestLease:
		return fmt.Errorf("--leader-election-lease-duration=%v: use 1s or more and %v at most, leases count in seconds", e.LeaseDuration, longestLease)
	}
	return e.checkLabels()
}

// checkLabels: a lease with a wrong label is refused by the API server, again and again, and nobody leads.
func (e *Election) checkLabels() error {
	for _, key := range slices.Sorted(maps.Keys(e.Labels)) {
		wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(e.Labels[key])...)
		if len(wrong) > 0 {
			return fmt.Errorf("--leader-election-labels=%s:%s: this cannot be a label: %s", key, e.Labels[key], wrong[0])
		}
	}
	return nil
}

func isNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// labels is a flag of the form key:value,key:value.
type labels map[string]string

// String implements flag.Value.
func (l *labels) String() string {
	if l == nil {
		return ""
	}
	var items []string
	for _, key := range slices.Sorted(maps.Keys(*l)) {
		items = append(items, key+":"+(*l)[key])
	}
	return strings.Join(items, ",")
}

// Set implements flag.Value.
func (l *labels) Set(text string) error {
	if text == "" {
		return nil
	}
	if *l == nil {
		*l = labels{}
	}
	for item := range strings.SplitSeq(text, ",") {
		parts := strings.Split(strings.TrimSpace(item), ":")
		if len(parts) != 2 || parts[0] == "" {
			return fmt.Errorf("%q is not of the form key:value", item)
		}
		(*l)[strings.TrimSpace(parts[0])] = strings.TrimSpace(parts[1])
	}
	return nil
}
