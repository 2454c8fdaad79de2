// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/csi-tandem/csi-tandem/pkg/explain"
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

// kindContent is what may be asked about besides snapshots.
const kindContent = "VolumeSnapshotContent"

func (r *rooms) commands() []sidecar.Command {
	const elsewhere = "provisioner explain "
	return []sidecar.Command{{
		Name: "explain", Object: "VOLUMESNAPSHOT",
		Kinds: []sidecar.Kind{
			{Name: "VolumeSnapshot", Short: "vs"}, {Name: kindContent, Short: "vsc"},
			{Name: "PersistentVolumeClaim", Short: "pvc", Ask: elsewhere + "pvc/"}, {Name: "PersistentVolume", Short: "pv", Ask: elsewhere + "pv/"},
		},
		Summary: "Says what the snapshotter would do next about a VolumeSnapshot and its content, and why; vsc/NAME is about a content alone.",
		Run:     r.explain,
	}, importing()}
}

// say puts a step into words for the page of the process.
func say(step any) string { return explain.Say(step).Does }

func (r *rooms) explain(ctx context.Context, q sidecar.Question) error {
	leases := []string{binderHome}
	if q.LeaseNamespace != "" && q.LeaseNamespace != binderHome {
		leases = append(leases, q.LeaseNamespace)
	}
	setting := explain.Setting{
		Client: q.Client, Clock: q.Clock, RetryStart: q.Options.RetryIntervalStart, RetryMax: q.Options.RetryIntervalMax,
		Driver: explain.Driver{
			Name: q.Driver.Name, Version: q.Driver.Version, Capabilities: q.Driver.Capabilities, Asked: q.Driver.Asked, Why: q.Driver.Why,
		},
	}
	rooms := explain.Snapshotter{Content: *r.content, Binding: *r.binding, LeaseNamespaces: leases}
	ask := func() (*explain.Report, error) { return explain.Snapshot(ctx, setting, rooms, q.Namespace, q.Name) }
	if q.Kind == kindContent {
		ask = func() (*explain.Report, error) { return explain.Content(ctx, setting, rooms, q.Name) }
	}
	report, err := ask()
	if err != nil {
		return err
	}
	return report.Write(q.Out, q.Format)
}
