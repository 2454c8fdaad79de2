// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// base is the name of a claim and of a snapshot of it, which are there for others to be made from.
const base = "base"

// scenario is one kind of life, as far as it is watched.
type scenario struct {
	name string
	// prepare is done in peace, before effects are counted; it may be nil.
	prepare func(ctx context.Context, c *crew, name string) error
	// act is what a user does, once.
	act func(ctx context.Context, c *crew, name string) error
	// undo is what a user does against it. It is nil for what is a deletion itself.
	undo func(ctx context.Context, c *crew, name string) error
}

var scenarios = []scenario{
	{name: "create", act: claimFrom(nil), undo: dropClaim},
	{name: "restore", act: claimFrom(fromSnapshot(base)), undo: dropClaim},
	{name: "clone", prepare: makeOriginal, act: cloneOriginal, undo: dropBoth},
	{name: "delete volume", prepare: claimFrom(nil), act: dropClaim},
	{name: "snapshot", act: cutBase, undo: dropSnapshot},
	{name: "import", prepare: snapshotAtDriver, act: importMade, undo: dropImport},
	{name: "delete snapshot", prepare: cutBase, act: dropSnapshot},
}

func claimFrom(source *corev1.TypedLocalObjectReference) func(context.Context, *crew, string) error {
	return func(ctx context.Context, c *crew, name string) error { return c.makeClaim(ctx, name, source) }
}

// original is the claim that a clone is made from. Each has its own, since the protection of a source stays as long as it lives.
func original(name string) string { return name + "-original" }

func makeOriginal(ctx context.Context, c *crew, name string) error {
	return c.makeClaim(ctx, original(name), nil)
}

func cloneOriginal(ctx context.Context, c *crew, name string) error {
	return c.makeClaim(ctx, name, fromClaim(original(name)))
}

func dropBoth(ctx context.Context, c *crew, name string) error {
	return errors.Join(c.deleteClaim(ctx, original(name)), c.deleteClaim(ctx, name))
}

func dropClaim(ctx context.Context, c *crew, name string) error { return c.deleteClaim(ctx, name) }

func cutBase(ctx context.Context, c *crew, name string) error { return c.makeSnapshot(ctx, name, base) }

func dropSnapshot(ctx context.Context, c *crew, name string) error {
	return c.deleteSnapshot(ctx, name)
}

func snapshotAtDriver(ctx context.Context, c *crew, name string) error {
	claim, err := c.kube.CoreV1().PersistentVolumeClaims(c.ns).Get(ctx, base, metav1.GetOptions{})
	if err != nil {
		return err
	}
	volume, err := c.kube.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	_, err = c.cast.MakeSnapshot(ctx, name, volume.Spec.CSI.VolumeHandle)
	return err
}

func importMade(ctx context.Context, c *crew, name string) error {
	inventory, err := c.script.Inventory(ctx)
	if err != nil {
		return err
	}
	for _, s := range inventory.Snapshots {
		if s.Name == name {
			return c.importSnapshot(ctx, name, s.ID)
		}
	}
	return fmt.Errorf("the driver has no snapshot %s", name)
}

func dropImport(ctx context.Context, c *crew, name string) error { return c.deleteImport(ctx, name) }

// how is what is done to a process around an effect.
type how int

const (
	kill how = iota
	term
	// absent kills both, and the object is deleted while nobody runs.
	absent
)

func (h how) String() string {
	return [...]string{"kill -9", "kill -TERM", "kill -9 of both, and deleted meanwhile"}[h]
}
