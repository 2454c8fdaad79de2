// SPDX-License-Identifier: Apache-2.0

package backend

import "errors"

// The reasons why the backend refuses. Each corresponds to one row of the
// error tables in the CSI specification; server knows which.
var (
	ErrInvalid   = errors.New("invalid request")
	ErrNotFound  = errors.New("not found")
	ErrConflict  = errors.New("name is taken by an incompatible object")
	ErrBusy      = errors.New("an operation is pending")
	ErrExhausted = errors.New("no pool has the room")
	ErrRange     = errors.New("size cannot be satisfied")
	ErrInUse     = errors.New("in use")
	ErrNotReady  = errors.New("not ready yet")
)
