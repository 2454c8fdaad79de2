// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/csi-tandem/csi-tandem/pkg/explain"
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

// kindVolume is what may be asked about besides claims.
const kindVolume = "PersistentVolume"

func (r *rooms) commands() []sidecar.Command {
	const elsewhere = "snapshotter explain "
	return []sidecar.Command{{
		Name: "explain", Object: "CLAIM",
		Kinds: []sidecar.Kind{
			{Name: "PersistentVolumeClaim", Short: "pvc"}, {Name: kindVolume, Short: "pv"},
			{Name: "VolumeSnapshot", Short: "vs", Ask: elsewhere + "vs/"}, {Name: "VolumeSnapshotContent", Short: "vsc", Ask: elsewhere + "vsc/"},
		},
		Summary: "Says what the provisioner would do next about a PersistentVolumeClaim and its volume, and why; pv/NAME is about a volume alone.",
		Run:     r.explain,
	}}
}

// say puts a step into words for the page of the process.
func say(step any) string { return explain.Say(step).Does }

func (r *rooms) explain(ctx context.Context, q sidecar.Question) error {
	options := *r.claim
	options.Topology, options.AttributesClass = q.Gates.Enabled(gateTopology), q.Gates.Enabled(gateAttributes)
	options.CrossNamespace = q.Gates.Enabled(gateCrossNamespace)
	setting := explain.Setting{
		Client: q.Client, Clock: q.Clock, RetryStart: q.Options.RetryIntervalStart, RetryMax: q.Options.RetryIntervalMax,
		Driver: explain.Driver{
			Name: q.Driver.Name, Version: q.Driver.Version, Capabilities: q.Driver.Capabilities, Asked: q.Driver.Asked, Why: q.Driver.Why,
		},
	}
	rooms := explain.Provisioner{Claim: options, Source: *r.source}
	ask := func() (*explain.Report, error) { return explain.Claim(ctx, setting, rooms, q.Namespace, q.Name) }
	if q.Kind == kindVolume {
		ask = func() (*explain.Report, error) { return explain.Volume(ctx, setting, rooms, q.Name) }
	}
	report, err := ask()
	if err != nil {
		return err
	}
	return report.Write(q.Out, q.Format)
}
