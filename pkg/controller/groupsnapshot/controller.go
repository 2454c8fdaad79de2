// SPDX-License-Identifier: Apache-2.0

// Package groupsnapshot owns one sentence: that nobody takes, or deletes, the group snapshots of the driver. Without it
// whoever asks for one where this sidecar has replaced another waits without a word.
//
// It must not touch a group or its members, and decides nothing: snapshot does.
//
// It stands outside the walks. The kind is not there in most clusters, so nothing is watched: a look from time to time has the
// same answer as that of a path that does not exist.
package groupsnapshot

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Name is that of the work, at the pages and in the logs.
const Name = "groupsnapshots"

// lookEvery is for how long somebody may wait for the sentence.
const lookEvery = time.Minute

// Deps is what the room needs.
type Deps struct {
	Client   kube.Client
	Recorder kube.Recorder
	Clock    clock.WithTicker
	// DriverName is whose groups are told of. It is empty in a process that binds the snapshots of all drivers.
	DriverName string
}

// Controller is the room.
type Controller struct{ Deps }

// New makes the room.
func New(deps Deps) *Controller { return &Controller{deps} }

// Run looks until the context ends. Who does not have the kind, or gives no right to see it, is not bothered with that.
func (c *Controller) Run(ctx context.Context) error {
	timer := c.Clock.NewTicker(lookEvery)
	defer timer.Stop()
	for {
		if err := c.Look(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(4).Info("Whether there are group snapshots is unknown", "why", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C():
		}
	}
}

// Look looks once, live. What was told already is known to the recorder.
func (c *Controller) Look(ctx context.Context) error {
	classes := map[string]snapshot.GroupClass{}
	for class, err := range kube.FetchAll[*kube.GroupSnapshotClass](ctx, c.Client, "", metav1.ListOptions{}) {
		if kube.IsGone(err) {
			break // there is no such kind, and who binds for all drivers needs none
		}
		if err != nil {
			return fmt.Errorf("looking for classes of group snapshots: %w", err)
		}
		classes[class.Name] = snapshot.GroupClass{Driver: class.Driver, IsDefault: class.Annotations[wellknown.AnnDefaultGroupSnapshotClass] == "true"}
	}
	for group, err := range kube.FetchAll[*kube.GroupSnapshot](ctx, c.Client, "", metav1.ListOptions{}) {
		if kube.IsGone(err) {
			return nil // as in most clusters
		}
		if err != nil {
			return fmt.Errorf("looking for group snapshots: %w", err)
		}
		told, isNews := snapshot.BuildGroupNotice(snapshot.Group{
			Namespace: group.Namespace, Name: group.Name, Class: group.Spec.VolumeGroupSnapshotClassName,
			Given: group.Spec.Source.VolumeGroupSnapshotContentName != "",
			Ready: group.Status.ReadyToUse, Leaving: group.DeletionTimestamp != nil,
		}, c.DriverName, classes)
		if isNews {
			// Who binds for all and who is beside the driver come to the same.
			c.Recorder.Shared(group, told.Reason, told.Message)
		}
	}
	return nil
}
