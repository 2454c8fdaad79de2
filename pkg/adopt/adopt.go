// SPDX-License-Identifier: Apache-2.0

// Package adopt owns the way of a snapshot that exists at the driver into Kubernetes: it makes the pair of
// objects of a pre-provisioned snapshot for a handle, or gives a content that was retained to a new snapshot.
//
// It must not know the driver, wait for anything, or run in a sidecar: a user asks for it, it reads live with
// that user's rights, and what is in the way is an error and never worked around.
//
// It stands before the walk of a snapshot: it ends where a binder finds a VolumeSnapshot that names a content
// which waits for it. Whatever it is interrupted in, asking again finishes it.
package adopt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// Order is what a user asks for.
type Order struct {
	// Namespace and Name are those of the VolumeSnapshot.
	Namespace, Name string
	// Handle is what the driver calls the snapshot. With it goes the name of a VolumeSnapshotClass, or of the
	// driver and a Policy.
	Handle, Class, Driver string
	// Content is the name of a VolumeSnapshotContent that exists, instead of a handle.
	Content string
	// Policy is Delete or Retain; empty leaves it to the class or to the content.
	Policy string
	// VolumeMode is that of the volume that was snapshotted, if somebody knows it.
	VolumeMode string
}

// Check refuses orders that make no sense before anybody is asked anything.
func (o Order) Check() error {
	switch {
	case !isOneOf(o.Policy, "", string(snapv1.VolumeSnapshotContentDelete), string(snapv1.VolumeSnapshotContentRetain)):
		return fmt.Errorf("--deletion-policy=%s: use Delete or Retain", o.Policy)
	case !isOneOf(o.VolumeMode, "", string(corev1.PersistentVolumeFilesystem), string(corev1.PersistentVolumeBlock)):
		return fmt.Errorf("--volume-mode=%s: use Filesystem or Block", o.VolumeMode)
	}
	if wrong := validation.IsDNS1123Subdomain(o.Name); len(wrong) > 0 {
		return fmt.Errorf("%q cannot be the name of a VolumeSnapshot: %s", o.Name, strings.Join(wrong, "; "))
	}
	return o.checkTogether()
}

// checkTogether looks at what goes with what.
func (o Order) checkTogether() error {
	switch {
	case (o.Handle == "") == (o.Content == ""):
		return errors.New("say either --handle, what the driver calls the snapshot, or --content, a VolumeSnapshotContent that was kept")
	case o.Content != "" && o.Class != "":
		return errors.New("--class goes with --handle: a content has its class already")
	case o.Content != "" && o.VolumeMode != "":
		return errors.New("--volume-mode goes with --handle: a content says it itself, and it cannot be changed")
	case o.Content != "" || o.Class != "" || o.Policy != "":
		return nil
	case o.Driver != "":
		return errors.New("say --class, or --deletion-policy=Retain to keep the snapshot when its objects are deleted, or =Delete")
	}
	return errOfWhich
}

// errOfWhich is said where neither a class nor a driver is known.
var errOfWhich = errors.New("of which driver? say --class, or --driver-name with --deletion-policy")

// CheckDriver refuses orders of which nothing says which driver they are for. The driver's own answer may do so, when it was asked.
func (o Order) CheckDriver() error {
	if o.Handle != "" && o.Class == "" && o.Driver == "" {
		return errOfWhich
	}
	return nil
}

func isOneOf(value string, allowed ...string) bool { return slices.Contains(allowed, value) }

// key names the VolumeSnapshot.
func (o Order) key() kube.Key { return kube.Key{Namespace: o.Namespace, Name: o.Name} }

// Plan is what there is to do, in this order. A part that is there already is nil.
type Plan struct {
	order Order
	// there is the VolumeSnapshot of the order, nil when it does not exist yet.
	there *snapv1.VolumeSnapshot
	// content is the name of the content that the snapshot is to be bound to.
	content string
	// create is a content to be created.
	create *kube.Content
	// free is a content that is to wait for the snapshot of the order from now on.
	free *kube.Content
	// snapshot is to be created.
	snapshot *snapv1.VolumeSnapshot
	// drop is a content whose place the created one takes.
	drop *kube.Content
}

// IsDone tells that nothing is left to do.
func (p *Plan) IsDone() bool {
	return p.create == nil && p.free == nil && p.snapshot == nil && p.drop == nil
}
