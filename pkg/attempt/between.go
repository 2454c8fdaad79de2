// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// Between two processes that keep the record, others may have led who do not read it: the incumbents, or one that was told to keep none. What
// is on record from before may be over by then, so that it is not to be trusted like the rest. Only the lease knows; each epoch has the number of
// the tenure in which it was written.

// betweenMark is in the keys of entries that are from before. It stays there for the processes to come, to which the epoch tells nothing any more.
const betweenMark = ".between"

func isBetween(key types.UID) bool { return strings.Contains(string(key), betweenMark) }

// tenure is that of this process, or of no lease.
func (r *Record) tenure() kube.Tenure {
	if r.options.Tenure == nil {
		return kube.Tenure{}
	}
	return r.options.Tenure()
}

// tenureIn is the tenure in which an epoch was written.
func tenureIn(epoch string) string {
	if parts := strings.Fields(epoch); len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// taking is what changes in an object when it is taken over. The marks come with the epoch in one write: after it, nobody could tell any more.
func (r *Record) taking(object *corev1.ConfigMap, epoch string) map[string]*string {
	changes := map[string]*string{epochKey: &epoch}
	tenure := r.tenure()
	if tenure.Lease == "" || tenure.Covers(tenureIn(object.Data[epochKey])) {
		return changes
	}
	for key, value := range object.Data {
		if isEntry(key) && !isBetween(types.UID(key)) {
			changes[key] = nil
			changes[markedKey(key, object.Data, changes)] = &value
		}
	}
	return changes
}

// maxKey is what is left of a key that somebody has written; the API server takes 253 bytes.
const maxKey = 200

func markedKey(key string, data map[string]string, changes map[string]*string) string {
	key = key[:min(len(key), maxKey)]
	marked := key + betweenMark
	for n := 2; ; n++ {
		if _, there := data[marked]; !there && changes[marked] == nil {
			return marked
		}
		marked = fmt.Sprintf("%s%s-%d", key, betweenMark, n)
	}
}
