// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// leaseLock is the elector's lock over a Lease.
type leaseLock struct {
	client   kube.Client
	key      kube.Key
	identity string
	labels   map[string]string
	recorder kube.Recorder

	seen *coordinationv1.Lease
}

var _ resourcelock.Interface = (*leaseLock)(nil)

// Get implements resourcelock.Interface.
func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	lease, err := kube.Fetch[*coordinationv1.Lease](ctx, l.client, l.key)
	if err != nil {
		return nil, nil, err
	}
	l.seen = lease
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	raw, err := json.Marshal(*record)
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *leaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	lease, err := kube.Create(ctx, l.client, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.key.Namespace, Name: l.key.Name, Labels: l.labels},
		Spec:       resourcelock.LeaderElectionRecordToLeaseSpec(&record),
	})
	if err == nil {
		l.seen = lease
	}
	return err
}

// Update implements resourcelock.Interface. The patch carries the resource version of what was read, so
// of two who want the lease one gets a conflict.
func (l *leaseLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.seen == nil {
		return errors.New("renewing a lease that was never read")
	}
	lease, err := kube.Patch(ctx, l.client, l.seen, func(lease *coordinationv1.Lease) {
		lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
		if record.HolderIdentity == l.identity && len(l.labels) > 0 {
			merged := maps.Clone(lease.Labels)
			if merged == nil {
				merged = map[string]string{}
			}
			maps.Copy(merged, l.labels)
			lease.Labels = merged
		}
	})
	if err == nil {
		l.seen = lease
	}
	return err
}

// RecordEvent implements resourcelock.Interface.
func (l *leaseLock) RecordEvent(what string) {
	lease := l.seen
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.key.Namespace, Name: l.key.Name}}
	}
	l.recorder.Normal(lease, "LeaderElection", l.identity+" "+what)
}

// Identity implements resourcelock.Interface.
func (l *leaseLock) Identity() string { return l.identity }

// Describe implements resourcelock.Interface.
func (l *leaseLock) Describe() string { return l.key.String() }
