// SPDX-License-Identifier: Apache-2.0

package content

import (
	"flag"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Options are the flags that steer this room.
type Options struct {
	// NamePrefix and NameLength make the name that the driver sees.
	NamePrefix string
	NameLength int
	// ExtraMetadata tells the driver the names of the objects.
	ExtraMetadata bool
	// NodeDeployment makes the process serve the node that it is on.
	NodeDeployment bool
}

// NewOptions gives the defaults.
func NewOptions() *Options {
	return &Options{NamePrefix: "snapshot", NameLength: wellknown.FullUID}
}

// AddFlags declares the flags.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.NamePrefix, "snapshot-name-prefix", o.NamePrefix,
		"what the driver's names of snapshots start with")
	fs.IntVar(&o.NameLength, "snapshot-name-uuid-length", o.NameLength,
		"how many digits of the VolumeSnapshot's UID the driver's names of snapshots have: 1 to 32, or -1 for the whole UID with its dashes")
	fs.BoolVar(&o.ExtraMetadata, "extra-create-metadata", o.ExtraMetadata,
		"tell the driver the names of VolumeSnapshot and VolumeSnapshotContent, as parameters of CreateSnapshot")
	fs.BoolVar(&o.NodeDeployment, "node-deployment", o.NodeDeployment,
		"serve only the contents that are marked for the node that the process is on, beside that node's driver; the NODE_NAME variable names it, and --enable-distributed-snapshotting makes the marks")
}

// Selector finds the contents that are marked for a node.
func Selector(node string) string { return wellknown.LabelManagedBy + "=" + wellknown.NodeLabel(node) }

// Validate refuses what could not work.
func (o *Options) Validate() error {
	return wellknown.CheckNameParts("snapshot-name", o.NamePrefix, o.NameLength)
}
