// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	_ "embed"
	"fmt"
)

//go:embed referencegrant.yaml
var grantKind []byte

// AddGrants lets the cluster know ReferenceGrants, which a cluster does not by itself. It takes a moment until one can be written.
func (s *Stage) AddGrants(ctx context.Context) error {
	return s.Cluster.ApplyBytes(ctx, grantKind, "")
}

// Grant is the manifest of a ReferenceGrant that lets the claims of a namespace have what another one has of a kind; it goes
// into the namespace that has it.
func Grant(guest, group, kind string) []byte {
	return fmt.Appendf(nil, `apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: grant}
spec:
  from: [{group: "", kind: PersistentVolumeClaim, namespace: %q}]
  to: [{group: %q, kind: %q}]
`, guest, group, kind)
}
