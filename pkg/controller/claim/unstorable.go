// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"net/http"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
)

// isUnstorable tells the refusals of an object for what it says, such as a topology key that is none or a
// context that is too large. A missing right, or a server in trouble, is not about the volume.
func isUnstorable(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || isOversized(err)
}

// oversized finds the words of etcd, and of gRPC on the way to it, for an object that is larger than they take. The API server does not
// know these errors and answers with 500 and no reason, as for any trouble that passes: there is no other sign than the text.
var oversized = regexp.MustCompile(`etcdserver: request is too large|message larger than max`)

func isOversized(err error) bool {
	var state apierrors.APIStatus
	if !errors.As(err, &state) {
		return false
	}
	status := state.Status()
	return apierrors.IsRequestEntityTooLargeError(err) || status.Code == http.StatusInternalServerError && oversized.MatchString(status.Message)
}

// undoUnstorable removes a volume that the API does not take. Without the secret it stays, and is still
// known, for as long as somebody may make the secret again.
func (c *Controller) undoUnstorable(ctx context.Context, attempt *provision.Attempt, cause error) (reconcile.Result, error) {
	undo := provision.Unstorable(attempt, cause)
	if isOversized(cause) {
		undo = provision.Oversized(attempt, cause)
	}
	in := c.gather(keyOfRef(attempt.Ref))
	secrets, err := kube.FetchSecret(ctx, c.Client, secretKey(attempt.Secret))
	switch {
	case err == nil:
		return c.undo(ctx, settlement{claim: in.Claim, attempt: attempt, secrets: secrets}, undo)
	case isGoneForGood(in, err):
		return c.lackSecret(ctx, in, undo.Begun().Attempt, err)
	default:
		return c.rejectOpen(ctx, in.Claim, attempt, cause)
	}
}

// isGoneForGood tells that a secret does not exist, and that nobody is left who could make it again: its namespace takes both along. Then what
// is to be removed becomes a removal that is open, which goes without the secret after a while.
func isGoneForGood(in provision.ClaimInput, err error) bool {
	return provision.IsAbandoned(in.Claim) && apierrors.IsNotFound(err)
}
