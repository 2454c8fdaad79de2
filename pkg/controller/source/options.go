// SPDX-License-Identifier: Apache-2.0

package source

import (
	"flag"
	"time"
)

// Options are the flags that steer this room.
type Options struct {
	// CloneThreads is how many source claims are handled at once.
	CloneThreads uint
	// SweepInterval is kept for the sake of its off switch: with 0, finalizers that a process before this
	// one has left on snapshots stay.
	SweepInterval time.Duration
}

// NewOptions gives the defaults.
func NewOptions() *Options { return &Options{CloneThreads: 1, SweepInterval: 5 * time.Minute} }

// AddFlags declares the flags.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.UintVar(&o.CloneThreads, "cloning-protection-threads", o.CloneThreads,
		"how many source claims of clones are handled at once")
	fs.DurationVar(&o.SweepInterval, "snapshot-orphan-sweep-interval", o.SweepInterval,
		"0 leaves finalizers on source snapshots that an earlier process put there; any other value lifts them, which happens at once and not by intervals")
}

// Validate refuses what could not work.
func (o *Options) Validate() error { return nil }
