// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// plainFailure is what the API server answers when it does not know an error of its store.
func plainFailure(text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: text}}
}

// TestUnstorable: a volume whose PersistentVolume the API refuses for what it says is removed and asked for anew; nothing stays
// at the driver when the claim goes. Catches a provisioner that holds on to it for ever, and one that removes what was written.
func TestUnstorable(t *testing.T) {
	refusals := map[string]error{
		"invalid":   apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolume"}, name, nil),
		"bad":       apierrors.NewBadRequest("no"),
		"too large": apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
		// These come as any other trouble of the API server, and never pass.
		"too large for etcd":        plainFailure("etcdserver: request is too large"),
		"too large to send to etcd": plainFailure("rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097352 vs. 2097152)"),
	}
	for title, refusal := range refusals {
		t.Run(title+", until the driver has learned", func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.API.Fail("create", "persistentvolumes", refusal, 2)
			start(h)
			h.Settle()
			if _, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok || len(h.Driver.Calls("DeleteVolume")) != 2 || len(h.Driver.Inventory()) != 1 {
				t.Error(h.Driver.Inventory(), h.Trace())
			}
			if lines := fmt.Sprint(h.Log.Lines()); !strings.Contains(lines, failed+"saving PersistentVolume "+name+": ") || !strings.Contains(lines, refusal.Error()) {
				t.Error("not told what is refused:", lines)
			}
		})
		t.Run(title+", and the claim goes", func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.API.Fail("create", "persistentvolumes", refusal, 99)
			start(h)
			h.Horizon = 10 * time.Second
			h.Settle()
			kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
			h.Horizon = time.Hour
			h.Settle()
			if left := h.Driver.Inventory(); len(left) != 0 {
				t.Error("left at the driver:", left, h.Trace())
			}
		})
	}
	t.Run("but it was written", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		h.API.Script(kit.Rule{Verb: "create", Resource: "persistentvolumes", Times: 1, Err: refusals["invalid"], Done: true})
		start(h)
		h.Settle()
		if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 || len(h.Driver.Inventory()) != 1 {
			t.Error(calls, h.Trace())
		}
	})
	t.Run("nothing is removed while nobody knows whether it was written", func(t *testing.T) {
		h := world(t, kit.Claim("data"))
		h.API.Fail("create", "persistentvolumes", refusals["invalid"], 99)
		h.API.Fail("list", "persistentvolumes", apierrors.NewInternalError(errors.New("etcd")), 99)
		start(h)
		h.Horizon = time.Minute
		h.Settle()
		if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
			t.Error(calls, h.Trace())
		}
	})
}

// TestUnstorableWhereverItDies: neither end of the program leaves a second volume, or none.
func TestUnstorableWhereverItDies(t *testing.T) {
	kit.Crash(t, kit.Scenario{
		World: func(h *kit.Harness) {
			h.Driver.Capabilities = can()
			h.Put(kit.Class(kit.ClassName), kit.Claim("data"))
			h.API.Fail("create", "persistentvolumes", apierrors.NewBadRequest("no"), 2)
		},
		Program: func(h *kit.Harness) { start(h) },
		Check: func(t testing.TB, h *kit.Harness) {
			if _, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok || len(h.Driver.Inventory()) != 1 {
				t.Error(h.Driver.Inventory(), h.Trace())
			}
		},
	})
}

// TestTooLargeToStore: the event says which field is how large and what helps, once; the volume does not stay; and it is not made and removed
// without a pause. Catches a room that takes what etcd says for a trouble that passes, and one that says "too large" only.
func TestTooLargeToStore(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.API.Fail("create", "persistentvolumes", plainFailure("etcdserver: request is too large"), 0)
	h.Driver.Next("CreateVolume", kit.Reply{Times: 99, Volume: func(v *csi.Volume) *csi.Volume {
		v.VolumeContext = map[string]string{"table": strings.Repeat("x", 1000-2*len("table")-len(`"f:":{},`))}
		return v
	}})
	start(h)
	h.Horizon = time.Hour
	h.Settle()
	said := strings.Join(h.Log.Lines(), "\n")
	const helps = "etcdserver: request is too large; the volume_context that the driver answered with takes 1000 bytes, its accessible_topology 0: the driver has to say less"
	if n := strings.Count(said, failed+"saving PersistentVolume "+name+": "+helps); n == 0 || n != strings.Count(said, "event") {
		t.Errorf("told %d times:\n%s", n, said)
	}
	if n := len(requests(h)); n > 25 || n != len(h.Driver.Calls("DeleteVolume")) || len(h.Driver.Inventory()) != 0 {
		t.Errorf("made %d times, removed %d times in an hour; left %v", n, len(h.Driver.Calls("DeleteVolume")), h.Driver.Inventory())
	}
}

// TestUnstorableWithoutItsSecret: a namespace takes claim and secret along while a volume waits for its removal that the API does not store.
// Catches a room that waits for the secret for ever, with the volume at the driver.
func TestUnstorableWithoutItsSecret(t *testing.T) {
	for title, edits := range map[string][]kit.Reply{"removed": nil, "not without": {{Code: codes.InvalidArgument, Text: "no key", Times: 99}}} {
		t.Run(title, func(t *testing.T) {
			h := world(t, kit.Claim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = kit.Ptr("secret") }),
				kit.Class("secret", func(c *storagev1.StorageClass) {
					c.Parameters = map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "s", "csi.storage.k8s.io/provisioner-secret-namespace": "default"}
				}), kit.Secret("s", map[string]string{"key": "v"}))
			h.API.Fail("create", "persistentvolumes", apierrors.NewBadRequest("no"), 0)
			h.Driver.Next("CreateVolume", kit.Reply{Meanwhile: func() {
				leaves(h)()
				kit.Remove[*corev1.Secret](h.API, kube.Key{Namespace: kit.Namespace, Name: "s"})
			}})
			h.Driver.Next("DeleteVolume", edits...)
			startRecorded(h)
			h.Horizon = time.Minute
			h.Settle()
			if len(h.Driver.Calls("DeleteVolume")) != 0 {
				t.Error("removed without the secret at once")
			}
			h.Horizon = 3 * time.Hour
			h.Settle()
			isLeft := edits != nil
			if left := h.Driver.Inventory(); len(left) != 0 != isLeft || len(onRecord(h)) != 0 != isLeft {
				t.Error("left at the driver:", left, "on record:", onRecord(h), h.Trace())
			}
			if told := strings.Contains(fmt.Sprint(h.Log.Lines()), "look for it there"); told != isLeft {
				t.Error("told that it is left:", told)
			}
		})
	}
}
