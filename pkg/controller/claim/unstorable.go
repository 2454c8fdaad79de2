// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// isUnstorable tells the refusals of an object for what it says, such as a topology key that is none or a
// context that is too large. A missing right, or a server in trouble, is not about the volume.
func isUnstorable(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// undoUnstorable removes a volume that the API does not take. Without the secret it stays, and is still
// known, until there is one.
func (c *Controller) undoUnstorable(ctx context.Context, attempt *provision.Attempt, cause error) (reconcile.Result, error) {
	claim := c.lookup(keyOfRef(attempt.Ref))
	secrets, err := kube.FetchSecret(ctx, c.Client, secretKey(attempt.Secret))
	if err != nil {
		return c.reject(ctx, claim, provision.Reject{Err: cause})
	}
	return c.undo(ctx, settlement{claim: claim, attempt: attempt, secrets: secrets}, provision.Unstorable(attempt, cause))
}
