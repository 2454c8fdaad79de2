// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// lookOnce looks at a key, and turns a panic into an error about that key alone. One object that a fault of this program cannot bear
// would otherwise end the process again at every start, and with it the work on everybody's objects. To end there is no safer: each effect
// may be the last one before a kill anyway, and what was begun is repeated from what is stored.
func (q *Queue) lookOnce(ctx context.Context, key Key) (result Result, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			klog.FromContext(ctx).Info("A fault of this program; the object waits, and all others are worked on", "stack", string(debug.Stack()))
			result, err = Result{}, fmt.Errorf("a fault of this program, not of the object: please report it with the stack in the log: %v", cause)
		}
	}()
	return q.look(ctx, key)
}
