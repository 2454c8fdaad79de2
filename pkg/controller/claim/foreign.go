// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/migration"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/throttle"
)

// Grants are the ReferenceGrants as the cache has them. A cluster may not have the kind, or have it later.
type Grants interface {
	ByIndex(index, value string) []*kube.ReferenceGrant
	HasSynced() bool
	// Failure is why they have not synced; nil while they are on their way.
	Failure() error
}

// grantsFor gathers the grants of the namespace that a claim wants its data from.
func (c *Controller) grantsFor(claim *corev1.PersistentVolumeClaim) provision.Grants {
	source, _ := provision.SourceOf(claim)
	if source == nil || source.Namespace == claim.Namespace {
		return provision.Grants{}
	}
	return c.GrantsOf(source.Namespace)
}

// GrantsOf gives the grants of a namespace. Where sources in other namespaces are not allowed at all, nothing is granted.
func (c *Controller) GrantsOf(namespace string) provision.Grants {
	if c.Grants == nil {
		return provision.Grants{}
	}
	if !c.Grants.HasSynced() {
		if err := c.Grants.Failure(); err != nil {
			return provision.Grants{Unknown: fmt.Errorf("%w; sources in other namespaces need the ReferenceGrant CRD (gateway.networking.k8s.io/v1beta1) and the right to list and watch referencegrants", err)}
		}
		return provision.Grants{Unknown: errors.New("they are not listed yet; if that stays so, the log of the provisioner names the right that it lacks"), Coming: true}
	}
	var all []provision.Grant
	for _, grant := range c.Grants.ByIndex(kube.ByNamespace, namespace) {
		all = append(all, grantOf(grant))
	}
	return provision.Grants{All: all}
}

func grantOf(grant *kube.ReferenceGrant) provision.Grant {
	var g provision.Grant
	for _, from := range grant.Spec.From {
		g.From = append(g.From, provision.GrantFrom(from))
	}
	for _, to := range grant.Spec.To {
		name := ""
		if to.Name != nil {
			name = *to.Name
		}
		g.To = append(g.To, provision.GrantTo{Group: to.Group, Kind: to.Kind, Name: name})
	}
	return g
}

// KeysOfGrant are the claims that want data from the namespace of a grant which has come, or which now
// says something else. One that goes needs no look: the next attempt asks anew.
func (c *Controller) KeysOfGrant(change kube.Change[*kube.ReferenceGrant]) []reconcile.Key {
	if change.New == nil || change.Old != nil && change.Old.ResourceVersion == change.New.ResourceVersion {
		return nil
	}
	return c.waiting(kube.ByForeignSource, change.New.Namespace)
}

// FetchAttributesServed asks whether the cluster has VolumeAttributesClasses. Not to know counts as yes:
// the claims that name one will find out.
func FetchAttributesServed(ctx context.Context, client kube.Client) bool {
	served, err := kube.FetchServed[*storagev1.VolumeAttributesClass](ctx, client)
	switch {
	case err != nil:
		klog.FromContext(ctx).V(2).Info("whether the cluster has VolumeAttributesClasses is not known", "err", err)
		return true
	case !served:
		klog.FromContext(ctx).Info("The cluster has no VolumeAttributesClasses: the feature is off")
	}
	return served
}

// IsMigrated tells the drivers that replace a plugin of Kubernetes itself.
func IsMigrated(driver string) bool {
	_, ok := migration.For(driver)
	return ok
}

// translatorOf is the translator of a driver, nil when it replaces nothing.
func translatorOf(driver string) provision.Translator {
	if translator, ok := migration.For(driver); ok {
		return translator
	}
	return nil
}

// marked makes the calls of an attempt count as those of its class, and as migrated, if that is.
func marked(ctx context.Context, attempt *provision.Attempt) context.Context {
	ctx = throttle.WithFlow(ctx, attempt.Volume.Spec.StorageClassName)
	if attempt.InTree {
		return driver.MarkMigrated(ctx)
	}
	return ctx
}
