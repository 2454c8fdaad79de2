// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sort"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tokenPrefix tells our tokens from garbage. What follows is the id of the
// last entry handed out, so that a token stays good when entries come and go.
const tokenPrefix = "after-"

type page[T any] struct {
	entries []T
	next    string
}

// cut takes one page out of entries that are sorted by id.
func cut[T any](all []T, id func(T) string, token string, limit int32) (page[T], error) {
	if limit < 0 {
		return page[T]{}, invalid("max_entries is negative")
	}
	if token != "" {
		last, ours := strings.CutPrefix(token, tokenPrefix)
		if !ours {
			// CSI specification: "starting_token is not valid" is ABORTED.
			return page[T]{}, status.Errorf(codes.Aborted, "starting_token %q is not valid", token)
		}
		all = all[sort.Search(len(all), func(i int) bool { return id(all[i]) > last }):]
	}
	if limit == 0 || int(limit) >= len(all) {
		return page[T]{entries: all}, nil
	}
	return page[T]{entries: all[:limit], next: tokenPrefix + id(all[limit-1])}, nil
}
