// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"flag"
	"fmt"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Options are the flags that steer this room.
type Options struct {
	// Bind says whose snapshots are bound.
	Bind Bind
	// PreventVolumeModeConversion writes the source's volume mode on contents.
	PreventVolumeModeConversion bool
	// Distributed writes on contents which node's snapshotter has to see to them.
	Distributed bool
}

// Bind is the value of --bind-snapshots.
type Bind string

// The values of --bind-snapshots.
const (
	// Auto is Own, but stands back when there are signs that somebody else binds.
	Auto Bind = "auto"
	// Own binds the snapshots of the driver beside us.
	Own Bind = "own"
	// All binds the snapshots of every driver.
	All Bind = "all"
	// None leaves binding to somebody else.
	None Bind = "none"
)

// Lease is the lease to hold while binding. The one for all drivers is known to other programs, which stand
// by while it is held; a binder for one driver must not keep the binders of other drivers waiting.
func (b Bind) Lease(driver string) string {
	if b == All {
		return wellknown.BinderLease
	}
	return wellknown.SanitizeLease(wellknown.BinderLease + "-" + driver)
}

// NewOptions gives the defaults.
func NewOptions() *Options {
	return &Options{Bind: Auto, PreventVolumeModeConversion: true}
}

// AddFlags declares the flags.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar((*string)(&o.Bind), "bind-snapshots", string(o.Bind),
		"whose VolumeSnapshots are bound to contents: those of the own driver (own), of all drivers (all), of nobody (none), "+
			"or own unless there are signs that another program does it (auto)")
	fs.BoolVar(&o.PreventVolumeModeConversion, "prevent-volume-mode-conversion", o.PreventVolumeModeConversion,
		"write the volume mode of the source on contents, so that it is not changed in a restore")
	fs.BoolVar(&o.Distributed, "enable-distributed-snapshotting", o.Distributed,
		"write on each content which node's snapshotter takes the snapshot: one that the volume can be reached from; for drivers that run with --node-deployment")
}

// Validate refuses what could not work.
func (o *Options) Validate() error {
	switch o.Bind {
	case Auto, Own, All, None:
		return nil
	default:
		return fmt.Errorf("--bind-snapshots=%s: use auto, own, all or none", o.Bind)
	}
}
