// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// The quota of the namespace has no room for one more ConfigMap: what is put is on record, or the caller hears that it is not. Catches one that takes the quota for
// a missing right, and goes on without a record.
func TestQuotaOfConfigMaps(t *testing.T) {
	h := kit.New(t)
	a := begin(t, h, "a", smallObjects)
	put(t, h, a, nth(0), text(filling))
	h.API.Script(kit.Rule{Verb: "create", Resource: configMaps, Err: apierrors.NewForbidden(schema.GroupResource{Resource: configMaps}, "record-1",
		errors.New("exceeded quota: objects, requested: count/configmaps=1, used: count/configmaps=10, limited: count/configmaps=10"))})
	err := a.Put(h.Ctx, nth(1), text(filling))
	b := begin(t, h, "b", smallObjects)
	if err == nil && len(b.found) != 2 {
		t.Error("Put says that it is on record, and the next process finds", b.found)
	}
}
