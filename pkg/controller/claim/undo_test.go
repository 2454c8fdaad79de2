// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func small(v *csi.Volume) *csi.Volume {
	v.CapacityBytes = 1
	return v
}

// methods are the calls that the driver got, in order.
func methods(h *kit.Harness) (all []string) {
	for _, call := range h.Driver.Calls() {
		all = append(all, call.Method)
	}
	return all
}

// TestUndoWithoutAnswer (T53): the first volume is too small, its removal has no certain outcome, and the driver gives the same id the
// next time, in the right size. It is not asked for before the removal has an end, not by the next process either. Catches a
// provisioner that takes the second answer: the removal, done late, would destroy a bound volume.
func TestUndoWithoutAnswer(t *testing.T) {
	for title, c := range map[string]struct {
		open   codes.Code
		dies   bool
		edits  []func(*claim.Options, *claim.Deps)
		leaves bool
	}{
		"T53 the deadline is over":                     {open: codes.DeadlineExceeded},
		"T53 an answer that says nothing":              {open: codes.Internal},
		"T53 a refusal at the door":                    {open: codes.PermissionDenied},
		"T53 the program dies":                         {open: codes.Unavailable, dies: true},
		"T53 the claim goes":                           {open: codes.Unavailable, leaves: true},
		"T53 the program dies, and the claim goes too": {open: codes.Unavailable, dies: true, leaves: true},
	} {
		t.Run(title, func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.Play(kit.Binder(h.API))
			h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
			h.Driver.Next("DeleteVolume", kit.Reply{Code: c.open, Text: "x", Times: 12})
			startRecorded(h)
			h.Horizon = 100 * time.Millisecond
			h.Settle()
			if c.dies {
				h.Restart()
			}
			if c.leaves {
				leaves(h)()
			}
			if c.dies {
				startRecorded(h)
			}
			h.Horizon = 30 * time.Minute
			h.Settle()
			calls := methods(h)
			if deletions := len(h.Driver.Calls("DeleteVolume")); deletions != 13 || slices.Contains(calls[1:1+deletions], "CreateVolume") {
				t.Errorf("calls %v\n%s", calls, h.Trace())
			}
			volume, made := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
			if made == c.leaves || made && volume.Status.Phase != corev1.VolumeBound || len(h.Driver.Inventory()) == 1 == c.leaves || len(onRecord(h)) != 0 {
				t.Errorf("made %v, at the driver %v, on record %v\n%s", made, h.Driver.Inventory(), onRecord(h), h.Trace())
			}
		})
	}
}

// TestUndoRefused: a removal that the driver refuses for certain leaves the volume there, and the driver is asked about it again, since
// it may have mended it. Catches one that repeats a removal for ever which the driver will never do.
func TestUndoRefused(t *testing.T) {
	h := world(t, kit.Claim("data"))
	h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.FailedPrecondition, Text: "in use", Times: 5})
	startRecorded(h)
	h.Settle()
	if _, made := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !made || len(h.Driver.Calls("DeleteVolume")) != 5 {
		t.Error(methods(h), h.Trace())
	}
}

// TestUndoWithoutSecret: a namespace takes claim and secret along while a removal is open. Catches a removal that waits for the secret
// for ever.
func TestUndoWithoutSecret(t *testing.T) {
	h := world(t, kit.Claim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = kit.Ptr("secret") }),
		kit.Class("secret", func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "s", "csi.storage.k8s.io/provisioner-secret-namespace": "default"}
		}), kit.Secret("s", map[string]string{"key": "canary"}))
	h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
	h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Unavailable, Text: "x", Times: 5})
	startRecorded(h)
	h.Horizon = 100 * time.Millisecond
	h.Settle()
	leaves(h)()
	kit.Remove[*corev1.Secret](h.API, kube.Key{Namespace: kit.Namespace, Name: "s"})
	h.Horizon = 30 * time.Minute
	h.Settle()
	if len(h.Driver.Inventory()) != 0 || len(onRecord(h)) != 0 || len(requests(h)) != 1 {
		t.Error(h.Driver.Inventory(), onRecord(h), h.Trace())
	}
}

// TestUndoWhereverItDies (T53): no end of the program makes it take a volume that may be removed late. The driver's removal takes effect
// although it says nothing.
func TestUndoWhereverItDies(t *testing.T) {
	kit.Crash(t, kit.Scenario{
		World: func(h *kit.Harness) {
			h.Driver.Capabilities = can()
			h.Put(kit.Class(kit.ClassName), kit.Claim("data"))
			h.Play(kit.Binder(h.API))
			h.Driver.Next("CreateVolume", kit.Reply{Volume: small})
			h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Times: 5})
		},
		Program: func(h *kit.Harness) { startRecorded(h) },
		Check: func(t testing.TB, h *kit.Harness) {
			_, made := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
			if !made || len(h.Driver.Inventory()) != 1 || len(onRecord(h)) != 0 {
				t.Error(h.Driver.Inventory(), onRecord(h), h.Trace())
			}
			open := false
			for _, call := range h.Driver.Calls() {
				if call.Method == "CreateVolume" && call.Code == codes.OK && open {
					t.Error("asked for while its removal is open", methods(h), h.Trace())
				}
				open = call.Method == "DeleteVolume" && call.Code != codes.OK
			}
		},
	})
}
