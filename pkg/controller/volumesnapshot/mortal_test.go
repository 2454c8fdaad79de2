// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"context"
	"sync/atomic"

	"github.com/container-storage-interface/spec/lib/go/csi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/content"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// mortal stands between a program and all that it can change, and ends it after some effects: what comes later does not
// happen, and of the last effect the program may not hear. What it remembers goes with the next restart.
type mortal struct {
	kube.Client
	driver content.Driver
	// left is how many effects there will be; below zero the program is dead.
	left *atomic.Int64
	// deaf says that the last answer is lost.
	deaf bool
	// creating and erasing are told of each call at the driver before it is sent.
	creating func(*csi.CreateSnapshotRequest)
	erasing  func(handle string)
}

// spend does one effect, unless the program is dead.
func (m mortal) spend(effect func() error) error {
	left := m.left.Add(-1)
	if left < 0 {
		return context.Canceled
	}
	err := effect()
	if left == 0 && m.deaf {
		return context.Canceled
	}
	return err
}

func (m mortal) isDead() bool { return m.left.Load() <= 0 }

func (m mortal) Create(ctx context.Context, r kube.Resource, obj, into kube.Object) error {
	return m.spend(func() error { return m.Client.Create(ctx, r, obj, into) })
}

func (m mortal) Patch(ctx context.Context, r kube.Resource, key kube.Key, body kube.PatchBody, into kube.Object) error {
	return m.spend(func() error { return m.Client.Patch(ctx, r, key, body, into) })
}

func (m mortal) Delete(ctx context.Context, r kube.Resource, key kube.Key, options metav1.DeleteOptions) error {
	return m.spend(func() error { return m.Client.Delete(ctx, r, key, options) })
}

func (m mortal) Fetch(ctx context.Context, r kube.Resource, key kube.Key, into kube.Object) error {
	if m.isDead() {
		return context.Canceled
	}
	return m.Client.Fetch(ctx, r, key, into)
}

func (m mortal) CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (made *csi.Snapshot, err error) {
	err = m.spend(func() error {
		m.creating(request)
		made, err = m.driver.CreateSnapshot(ctx, request)
		return err
	})
	return made, err
}

func (m mortal) DeleteSnapshot(ctx context.Context, request *csi.DeleteSnapshotRequest) error {
	return m.spend(func() error {
		m.erasing(request.GetSnapshotId())
		return m.driver.DeleteSnapshot(ctx, request)
	})
}

func (m mortal) GetSnapshot(ctx context.Context, request *csi.GetSnapshotRequest) (*csi.Snapshot, error) {
	return m.driver.GetSnapshot(ctx, request)
}

func (m mortal) ListSnapshots(ctx context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	return m.driver.ListSnapshots(ctx, request)
}

// program is both rooms behind a mortal.
func (m mortal) program(h *kit.Harness) {
	_, room := binder(h, Own, func(d *Deps) { d.Client = m })
	h.Add(room, taker(h, func(d *content.Deps) { d.Client, d.Driver = m, m }))
}
