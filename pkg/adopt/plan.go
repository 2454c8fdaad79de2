// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// FetchPlan reads what there is and decides what is missing. It writes nothing.
func FetchPlan(ctx context.Context, c kube.Client, o Order) (*Plan, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	p := &Plan{order: o}
	there, found, err := fetch[*snapv1.VolumeSnapshot](ctx, c, o.key())
	if err != nil {
		return nil, err
	}
	if found {
		p.there = there
	} else if err := p.checkNamespace(ctx, c); err != nil {
		return nil, err
	}
	if o.Handle != "" {
		err = p.planHandle(ctx, c)
	} else {
		err = p.planContent(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	return p, p.planSnapshot()
}

// fetch reads an object that need not be there.
func fetch[T kube.Object](ctx context.Context, c kube.Client, key kube.Key) (obj T, found bool, err error) {
	obj, err = kube.Fetch[T](ctx, c, key)
	switch {
	case err == nil:
		return obj, true, nil
	case apierrors.IsNotFound(err):
		return obj, false, nil
	}
	return obj, false, fmt.Errorf("reading %s %s: %w", kube.ResourceOf[T]().Kind, kube.IndexValue(key), err)
}

// checkNamespace makes sure that the VolumeSnapshot can be made before a content is written that waits for it. Whoever
// may not read the namespace may still write in it.
func (p *Plan) checkNamespace(ctx context.Context, c kube.Client) error {
	name := p.order.Namespace
	namespace, found, err := fetch[*corev1.Namespace](ctx, c, kube.Key{Name: name})
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("namespace %s does not exist, and nothing was written: kubectl create namespace %[1]s, or say another one with -n", name)
	case namespace.DeletionTimestamp != nil:
		return fmt.Errorf("namespace %s is being deleted, and nothing was written: ask again when it is there anew, or say another one with -n", name)
	}
	return nil
}

// planHandle is for a snapshot that Kubernetes does not know yet.
func (p *Plan) planHandle(ctx context.Context, c kube.Client) error {
	class, err := p.fetchClass(ctx, c)
	if err != nil {
		return err
	}
	wanted, err := buildContent(p.order, class)
	if err != nil {
		return err
	}
	return p.planCreate(ctx, c, wanted, p.order.Handle)
}

// planCreate makes a content unless it is there.
func (p *Plan) planCreate(ctx context.Context, c kube.Client, wanted *kube.Content, handle string) error {
	p.content = wanted.Name
	there, found, err := fetch[*kube.Content](ctx, c, kube.Key{Name: wanted.Name})
	switch {
	case err != nil:
		return err
	case found:
		// The name follows from driver and handle, so this is the same snapshot, whoever asked for it.
		return p.acceptContent(there)
	}
	p.create = wanted
	return p.checkUnknown(ctx, c, wanted.Spec.Driver, handle)
}

// acceptContent is for what an earlier order has made. Where the snapshot that it was made for is gone, and only has left the name, it
// is freed for the next one, as the binder would refuse it.
func (p *Plan) acceptContent(there *kube.Content) error {
	ref := there.Spec.VolumeSnapshotRef
	switch {
	case there.DeletionTimestamp != nil:
		return goingError(there)
	case ref.Namespace != p.order.Namespace || ref.Name != p.order.Name:
		return fmt.Errorf("the snapshot is imported already: VolumeSnapshotContent %s is for VolumeSnapshot %s/%s; --content=%s gives it to another one when that is gone",
			there.Name, ref.Namespace, ref.Name, there.Name)
	case p.order.Policy != "" && string(there.Spec.DeletionPolicy) != p.order.Policy:
		return fmt.Errorf("VolumeSnapshotContent %s is there already with deletionPolicy %s: change it there", there.Name, there.Spec.DeletionPolicy)
	case !p.isBound(there) && !p.isWaiting(there):
		p.free = there
	}
	return nil
}

func (p *Plan) fetchClass(ctx context.Context, c kube.Client) (*snapv1.VolumeSnapshotClass, error) {
	o := &p.order
	if o.Class == "" {
		return nil, o.CheckDriver()
	}
	class, found, err := fetch[*snapv1.VolumeSnapshotClass](ctx, c, kube.Key{Name: o.Class})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, fmt.Errorf("there is no VolumeSnapshotClass %s: %s", o.Class, p.otherClasses(ctx, c))
	case o.Driver != "" && o.Driver != class.Driver:
		return nil, fmt.Errorf("VolumeSnapshotClass %s is of driver %s, and %s is asked for: %s; if the snapshot is of driver %[2]s, leave out what names the other one, --driver-name or --csi-address",
			class.Name, class.Driver, o.Driver, p.otherClasses(ctx, c))
	}
	return class, nil
}

// checkUnknown makes sure that no other content has the snapshot: with two of them, deleting one takes the data
// of the other away.
func (p *Plan) checkUnknown(ctx context.Context, c kube.Client, driver, handle string) error {
	var other *kube.Content
	err := each(ctx, c, metav1.ListOptions{}, func(there *kube.Content) {
		if other == nil && there.Spec.Driver == driver && handleOf(there) == handle && there.Name != p.order.Content {
			other = there
		}
	})
	switch {
	case err != nil:
		return fmt.Errorf("looking whether another VolumeSnapshotContent has the snapshot: %w", err)
	case other != nil:
		ref := other.Spec.VolumeSnapshotRef
		return fmt.Errorf("VolumeSnapshotContent %s has the snapshot already, for VolumeSnapshot %s/%s; --content=%s gives it to another one when that is gone",
			other.Name, ref.Namespace, ref.Name, other.Name)
	}
	return nil
}

// handleOf is what the driver calls the content's snapshot, as far as it is known.
func handleOf(c *kube.Content) string {
	if c.Spec.Source.SnapshotHandle != nil {
		return *c.Spec.Source.SnapshotHandle
	}
	if c.Status != nil && c.Status.SnapshotHandle != nil {
		return *c.Status.SnapshotHandle
	}
	return ""
}

// planSnapshot looks at the VolumeSnapshot of the order.
func (p *Plan) planSnapshot() error {
	name := kube.IndexValue(p.order.key())
	switch there := p.there; {
	case there == nil:
		p.snapshot = buildSnapshot(p.order, p.content)
		return nil
	case there.DeletionTimestamp != nil:
		return fmt.Errorf("VolumeSnapshot %s is being deleted: ask again when it is gone, or use another name", name)
	case !binding.IsPreProvisioned(there) || binding.ContentName(there) != p.content:
		return fmt.Errorf("VolumeSnapshot %s exists and is made from something else: use another name", name)
	}
	return nil
}

func goingError(c *kube.Content) error {
	return fmt.Errorf("VolumeSnapshotContent %s is being deleted (its deletionPolicy is %s): ask again when it is gone", c.Name, c.Spec.DeletionPolicy)
}

// memberError: what a group has made goes with the group.
func memberError(c *kube.Content) error {
	return fmt.Errorf("VolumeSnapshotContent %s is a member of the group snapshot %s, and goes with it: it cannot be given to another snapshot", c.Name, c.GroupHandle())
}
