// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Tenure is one time of holding a lease. A lease counts them, whoever holds it, and those who note theirs on it can tell whether anybody else
// had it in between: since when there was nobody is First. The zero Tenure is of no lease.
type Tenure struct {
	Lease       types.UID
	First, Last int64
}

// String is what Covers understands. It has no blanks.
func (t Tenure) String() string { return fmt.Sprintf("%s/%d", t.Lease, t.Last) }

// Is tells that both are the same time of holding the same lease, whatever is noted on it.
func (t Tenure) Is(other Tenure) bool { return t.Lease == other.Lease && t.Last == other.Last }

// Covers tells that from the tenure of a text on nobody else held the lease. What is not understood may be anybody's.
func (t Tenure) Covers(text string) bool {
	uid, number, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	return err == nil && types.UID(uid) == t.Lease && t.First <= n && n <= t.Last
}

// TenureOf is the tenure of who holds a lease now.
func TenureOf(lease *coordinationv1.Lease) Tenure {
	now := transitions(lease)
	first, last, ok := notedOn(lease)
	if !ok || last != now {
		first = now
	}
	return Tenure{Lease: lease.UID, First: first, Last: now}
}

// NoteTenure notes the tenure of a lease on it, as one that follows that of the lease before. It belongs into the very write that takes the lease:
// older sidecars keep what is noted while they count on, so that a gap shows.
func NoteTenure(lease, before *coordinationv1.Lease) {
	now := transitions(lease)
	first, last, ok := notedOn(before)
	if !ok || last != transitions(before) || first > last {
		first = now
	}
	SetAnnotation(lease, wellknown.AnnLed, fmt.Sprintf("%d-%d", first, now))
}

func transitions(lease *coordinationv1.Lease) int64 {
	return int64(ptr.Deref(lease.Spec.LeaseTransitions, 0))
}

func notedOn(lease *coordinationv1.Lease) (first, last int64, ok bool) {
	from, to, _ := strings.Cut(lease.Annotations[wellknown.AnnLed], "-")
	first, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	last, err = strconv.ParseInt(to, 10, 64)
	return first, last, err == nil
}
