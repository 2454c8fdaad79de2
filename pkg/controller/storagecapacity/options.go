// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"flag"
	"fmt"
	"time"
)

// Options are the flags that steer this room.
type Options struct {
	Enabled      bool
	Threads      uint
	PollInterval time.Duration
	Immediate    bool
	OwnerLevel   int
	QPS          float64
	Burst        int
}

// NewOptions gives the defaults. Threads and limits are faster than such sidecars have been: a segment that
// does not answer must not hold up the others, and the API server shares itself out.
func NewOptions() *Options {
	return &Options{Threads: 10, PollInterval: time.Minute, OwnerLevel: 1, QPS: -1, Burst: 5}
}

// AddFlags declares the flags.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.BoolVar(&o.Enabled, "enable-capacity", o.Enabled,
		"publish CSIStorageCapacity objects, by which the scheduler knows where there is room; needs the variables NAMESPACE and, unless --capacity-ownerref-level is negative, POD_NAME")
	fs.UintVar(&o.Threads, "capacity-threads", o.Threads, "how many segments the driver is asked about at once")
	fs.DurationVar(&o.PollInterval, "capacity-poll-interval", o.PollInterval,
		"how often the driver is asked about each segment without a reason; volumes that come, go or find no room are reasons")
	fs.BoolVar(&o.Immediate, "capacity-for-immediate-binding", o.Immediate, "publish for classes with immediate binding as well")
	fs.IntVar(&o.OwnerLevel, "capacity-ownerref-level", o.OwnerLevel,
		"steps from the pod to the owner of the objects: 0 is the pod, 1 what controls it, such as a StatefulSet, DaemonSet or ReplicaSet, 2 a Deployment; negative leaves them without owner")
	fs.Float64Var(&o.QPS, "kube-api-capacity-qps", o.QPS, "requests per second for capacity objects, which have a client of their own; 0 or less sets no limit of ours")
	fs.IntVar(&o.Burst, "kube-api-capacity-burst", o.Burst, "requests that may exceed --kube-api-capacity-qps at once, when that sets a limit")
}

// Validate refuses what could not work.
func (o *Options) Validate() error {
	switch {
	case !o.Enabled:
		return nil
	case o.Threads == 0:
		return fmt.Errorf("--capacity-threads=0: nothing would be done, use 1 or more")
	case o.PollInterval <= 0:
		return fmt.Errorf("--capacity-poll-interval=%v: use a duration such as 1m", o.PollInterval)
	case o.QPS > 0 && o.Burst < 1:
		return fmt.Errorf("--kube-api-capacity-burst=%d: use 1 or more, since --kube-api-capacity-qps sets a limit", o.Burst)
	}
	return nil
}
