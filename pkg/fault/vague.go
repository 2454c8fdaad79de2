// SPDX-License-Identifier: Apache-2.0

package fault

import "google.golang.org/grpc/codes"

// IsVague tells that the driver did answer, but in a way that says nothing about the outcome. Unlike a
// call that timed out, it is not running any more, so a few prompt repeats find out as much as can be
// found out.
func IsVague(err error) bool {
	e := Of(err)
	return e != nil && (e.Code == codes.Internal || e.Code == codes.Unknown)
}
