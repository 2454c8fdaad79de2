// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/csi-tandem/csi-tandem/pkg/explain"
	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

func (r *rooms) commands() []sidecar.Command {
	return []sidecar.Command{{
		Name: "explain", Object: "VOLUMESNAPSHOT", Kinds: []string{"vs", "volumesnapshot", "volumesnapshots"},
		Summary: "Says what the snapshotter would do next about a VolumeSnapshot and its content, and why.",
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
	report, err := explain.Snapshot(ctx, explain.Setting{
		Client: q.Client, Clock: q.Clock, RetryStart: q.Options.RetryIntervalStart, RetryMax: q.Options.RetryIntervalMax,
		Driver: explain.Driver{
			Name: q.Driver.Name, Version: q.Driver.Version, Capabilities: q.Driver.Capabilities, Asked: q.Driver.Asked, Why: q.Driver.Why,
		},
	}, explain.Snapshotter{Content: *r.content, Binding: *r.binding, LeaseNamespaces: leases}, q.Namespace, q.Name)
	if err != nil {
		return err
	}
	return report.Write(q.Out, q.Format)
}
