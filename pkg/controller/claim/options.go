// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"errors"
	"flag"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Options are the flags that steer this room. Topology and AttributesClass are feature gates, set by the
// program.
type Options struct {
	provision.Options
	// Record has open attempts written down.
	Record bool
	// NodeDeployment makes the process serve the node that it is on.
	NodeDeployment bool
}

// NewOptions gives the defaults.
func NewOptions() *Options {
	return &Options{Record: true, Options: provision.Options{
		NamePrefix: "pvc", NameLength: wellknown.FullUID, PreventModeConversion: true,
		RestoreSize: provision.RefuseSmaller, RestoreTopology: provision.IgnoreSource,
		Places: topology.Options{Immediate: true}, Topology: true, AttributesClass: true,
		Racing: provision.Racing{Immediate: true, Base: 20 * time.Second, Max: time.Minute},
	}}
}

// AddFlags declares the flags.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.NamePrefix, "volume-name-prefix", o.NamePrefix,
		"what the names of new volumes start with")
	fs.IntVar(&o.NameLength, "volume-name-uuid-length", o.NameLength,
		"how many digits of the claim's UID the names of new volumes have: 1 to 32, or -1 for the whole UID with its dashes")
	fs.StringVar(&o.DefaultFSType, "default-fstype", o.DefaultFSType,
		"file system of volumes whose class names none; empty leaves the choice to the driver")
	fs.BoolVar(&o.ExtraCreateMetadata, "extra-create-metadata", o.ExtraCreateMetadata,
		"tell the driver the names of claim and volume, as parameters of CreateVolume")
	fs.BoolVar(&o.Places.Strict, "strict-topology", o.Places.Strict,
		"for claims with a selected node: ask for a volume in that node's segment and nowhere else")
	fs.BoolVar(&o.Places.Immediate, "immediate-topology", o.Places.Immediate,
		"for claims without a selected node: tell the driver the segments of the cluster")
	fs.BoolVar(&o.PublishReadOnly, "controller-publish-readonly", o.PublishReadOnly,
		"mark volumes of claims that only read, ReadOnlyMany and nothing else, as read-only")
	fs.BoolVar(&o.PreventModeConversion, "prevent-volume-mode-conversion", o.PreventModeConversion,
		"refuse restores that turn a file system into a block device or back, unless the snapshot's content allows it")
	fs.BoolVar(&o.Record, "attempt-record", o.Record,
		"write down each CreateVolume before it is sent, in ConfigMaps beside the lease, so that what a process leaves unfinished is finished by the next one; false keeps that in memory only")
	o.addChoices(fs)
}

// Validate refuses what could not work.
func (o *Options) Validate() error {
	return errors.Join(wellknown.CheckNameParts("volume-name", o.NamePrefix, o.NameLength),
		wellknown.CheckObjectPrefix("volume-name", o.NamePrefix), o.checkChoices(), o.checkRacing())
}
