// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/csi-tandem/csi-tandem/pkg/adopt"
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

// order is what the flags of the import say.
type order struct {
	adopt.Order
	dryRun bool
}

func importing() sidecar.Command {
	o := &order{}
	return sidecar.Command{
		Name: "import", Object: "VOLUMESNAPSHOT", Kinds: []sidecar.Kind{{Name: "VolumeSnapshot", Short: "vs"}},
		Summary: "Brings a snapshot that exists at the driver into Kubernetes, or gives a VolumeSnapshotContent that was kept to a new VolumeSnapshot.",
		Notes: `With --handle it creates a VolumeSnapshotContent for what the driver calls the snapshot, and the VolumeSnapshot that is bound to it.
With --content it gives a VolumeSnapshotContent whose VolumeSnapshot is gone to the one that is named here, and creates that.
What is there already is left as it is, so that asking twice does no harm. What is in the way is told, and nothing is done.
The driver is not called: the running snapshotter asks it about the snapshot, and writes into the VolumeSnapshot what it says.`,
		Add: o.addFlags, Writes: true, Check: o.check, Run: o.run,
	}
}

func (o *order) addFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Handle, "handle", "", "what the driver calls the snapshot")
	fs.StringVar(&o.Class, "class", "", "`VolumeSnapshotClass` that says which driver, which secret, and whether the snapshot is deleted with its objects")
	fs.StringVar(&o.Content, "content", "", "`VolumeSnapshotContent` that was kept, instead of a handle")
	fs.StringVar(&o.Policy, "deletion-policy", "", "Delete or Retain, instead of what the class or the content says")
	fs.StringVar(&o.VolumeMode, "volume-mode", "", "Filesystem or Block: that of the volume that was snapshotted; empty leaves it open")
	fs.BoolVar(&o.dryRun, "dry-run", false, "write nothing, and print as YAML what would be written")
}

// check refuses an order that nobody could carry out.
func (o *order) check(q sidecar.Question) error {
	o.Namespace, o.Name, o.Driver = q.Namespace, q.Name, q.Driver.Name
	if err := o.Check(); err != nil {
		return err
	}
	if q.Driver.Why == "" {
		return nil // the driver may say its name itself
	}
	return o.CheckDriver()
}

func (o *order) run(ctx context.Context, q sidecar.Question) error {
	o.Namespace, o.Name, o.Driver = q.Namespace, q.Name, q.Driver.Name
	plan, err := adopt.FetchPlan(ctx, q.Client, o.Order)
	if err != nil {
		return err
	}
	// A driver that answers is there.
	if !q.Driver.Asked {
		if err := plan.Warn(ctx, q.Client, q.Aside); err != nil {
			return err
		}
	}
	if o.dryRun {
		return plan.WriteYAML(q.Out)
	}
	if err := plan.CreateAll(ctx, q.Client, q.Out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(q.Out, "How it goes on: snapshotter explain -n %s %s\n", q.Namespace, q.Name)
	return err
}
