// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/csi-tandem/csi-tandem/pkg/explain"
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

func (r *rooms) commands() []sidecar.Command {
	return []sidecar.Command{{
		Name: "explain", Object: "CLAIM", Kinds: []string{"pvc", "persistentvolumeclaim", "persistentvolumeclaims"},
		Summary: "Says what the provisioner would do next about a PersistentVolumeClaim and its volume, and why.",
		Run:     r.explain,
	}}
}

// say puts a step into words for the page of the process.
func say(step any) string { return explain.Say(step).Does }

func (r *rooms) explain(ctx context.Context, q sidecar.Question) error {
	options := *r.claim
	options.Topology, options.AttributesClass = q.Gates.Enabled(gateTopology), q.Gates.Enabled(gateAttributes)
	options.CrossNamespace = q.Gates.Enabled(gateCrossNamespace)
	report, err := explain.Claim(ctx, explain.Setting{
		Client: q.Client, Clock: q.Clock, RetryStart: q.Options.RetryIntervalStart, RetryMax: q.Options.RetryIntervalMax,
		Driver: explain.Driver{
			Name: q.Driver.Name, Version: q.Driver.Version, Capabilities: q.Driver.Capabilities, Asked: q.Driver.Asked, Why: q.Driver.Why,
		},
	}, explain.Provisioner{Claim: options, Source: *r.source}, q.Namespace, q.Name)
	if err != nil {
		return err
	}
	return report.Write(q.Out, q.Format)
}
