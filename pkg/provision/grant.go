// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"slices"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Grant is what one ReferenceGrant says: who may refer to what in its namespace.
type Grant struct {
	From []GrantFrom
	To   []GrantTo
}

// GrantFrom is who may refer.
type GrantFrom struct{ Group, Kind, Namespace string }

// GrantTo is what may be referred to. An empty name stands for all of the kind.
type GrantTo struct{ Group, Kind, Name string }

// Grants are those of the namespace that a source is in.
type Grants struct {
	All []Grant
	// Unknown says why they could not be read. Then nothing is granted: the owner of the other namespace
	// has the last word, and it was not heard.
	Unknown error
	// Coming tells that they soon will be.
	Coming bool
}

// checkNamespace refuses a source in another namespace unless its owner lets the claims of this one have it.
func checkNamespace(in ClaimInput, source *Source, group string) error {
	ref := in.Claim.Spec.DataSourceRef
	switch {
	case source == nil:
		return nil
	case !in.CrossNamespace && in.Claim.Spec.DataSource == nil && valueOf(ref.Namespace) != "":
		return advise(errors.New("dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled"),
			"start the provisioner with --feature-gates=CrossNamespaceVolumeDataSource=true, or %shas its source in namespace %s", newClaim, in.Claim.Namespace)
	case source.Namespace == in.Claim.Namespace || isGranted(in.Grants.All, in.Claim.Namespace, source, group):
		return nil
	}
	err := fmt.Errorf("accessing %s/%s of %s dataSource from %s/%s isn't allowed", source.Namespace, source.Name, source.Kind, in.Claim.Namespace, in.Claim.Name)
	switch {
	case in.Grants.Coming:
		return pending{fmt.Errorf("%w: ReferenceGrants cannot be read: %w", err, in.Grants.Unknown)}
	case in.Grants.Unknown != nil:
		return fmt.Errorf("%w: ReferenceGrants cannot be read: %w", err, in.Grants.Unknown)
	}
	return advise(err, "a ReferenceGrant in namespace %s has to let PersistentVolumeClaims of namespace %s refer to %s %s", source.Namespace, in.Claim.Namespace, source.Kind, source.Name)
}

// isGranted asks for one grant that names both sides: what one grant allows somebody and another allows of
// something was never allowed together.
func isGranted(grants []Grant, namespace string, source *Source, group string) bool {
	from := GrantFrom{Kind: wellknown.KindPersistentVolumeClaim, Namespace: namespace}
	return slices.ContainsFunc(grants, func(g Grant) bool {
		return slices.Contains(g.From, from) && slices.ContainsFunc(g.To, func(to GrantTo) bool {
			return to.Group == group && to.Kind == source.Kind && (to.Name == "" || to.Name == source.Name)
		})
	})
}
