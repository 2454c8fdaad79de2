// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/trace"
)

// look hands the key to the room, under a span of its own if anything comes of it.
func (q *Queue) look(ctx context.Context, key Key) (Result, error) {
	ctx, look := trace.Begin(ctx, q.options.Name, key.Namespace, key.Name)
	result, err := q.handle(ctx, key)
	look.End(cause(err))
	return result, err
}

// cause is a word for why a look failed. The words of the error stay in the logs: they may repeat those of a driver.
func cause(err error) string {
	failure := fault.Of(err)
	switch {
	case err == nil, apierrors.IsConflict(err):
		return ""
	case failure != nil:
		return failure.Code.String()
	case apierrors.ReasonForError(err) != "":
		return string(apierrors.ReasonForError(err))
	}
	return "Failed"
}
