// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

const lost = failed + "the claim is gone and the driver cannot say whether volume "

func leaves(h *kit.Harness) func() {
	return func() { kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey) }
}

// TestOutagesOfTheBackend: answers that say nothing do not make the provisioner forget a volume that a deleted claim may have left.
// Catches patience of seconds.
func TestOutagesOfTheBackend(t *testing.T) {
	for _, code := range []codes.Code{codes.Internal, codes.Unknown} {
		t.Run("T12 over before the patience is: "+code.String(), func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.Play(kit.Binder(h.API))
			h.Driver.Next("CreateVolume", kit.Reply{Code: code, Text: "x", Done: true, Times: 12, Meanwhile: leaves(h)})
			start(h)
			h.Horizon = 50 * time.Minute
			h.Settle()
			volume, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
			if !ok || volume.Status.Phase != corev1.VolumeReleased {
				t.Error("the volume is at the driver and nowhere else", h.Trace())
			}
		})
	}
	for _, code := range []codes.Code{codes.Internal, codes.NotFound, codes.FailedPrecondition, codes.ResourceExhausted} {
		t.Run("T12 for good: "+code.String(), func(t *testing.T) {
			h := world(t, kit.Claim("data"))
			h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "y", Meanwhile: leaves(h)}, kit.Reply{Code: code, Text: "x", Times: 99})
			c := start(h)
			h.Horizon = 3 * time.Hour
			h.Settle()
			events := slices.DeleteFunc(slices.Clone(h.Log.Lines()), func(line string) bool { return !strings.HasPrefix(line, "event") })
			said := ": rpc error: code = " + code.String() + " desc = x"
			want := []string{lost + name + " was made; still trying" + said, lost + name + " was made; look for it there" + said}
			if !slices.Equal(events, want) {
				t.Errorf("got %q", events)
			}
			if at := h.Clock.Since(kit.Start); at < time.Hour || at > time.Hour+10*time.Minute {
				t.Errorf("let go after %v", at)
			}
			if c.Status().Queued != 1 { // without another look it would be shown as waiting for ever
				t.Errorf("%d keys are to be looked at", c.Status().Queued)
			}
		})
	}
}

// TestSecretGoesWithTheClaim: a namespace takes claim and secret with it while the outcome is open. Catches a provisioner that
// asks for the secret for ever and tells nobody, and one that goes without it too soon.
func TestSecretGoesWithTheClaim(t *testing.T) {
	for title, c := range map[string]struct {
		replies []kit.Reply
		deny    bool
		made    bool
		ends    bool
	}{
		"the driver does without": {nil, false, true, true},
		"the driver does not":     {[]kit.Reply{{Code: codes.InvalidArgument, Text: "no key", Times: 99}}, false, false, true},
		"not known to be gone":    {nil, true, false, false},
	} {
		t.Run(title, func(t *testing.T) {
			class := kit.Class("secret", func(c *storagev1.StorageClass) {
				c.Parameters = map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "s", "csi.storage.k8s.io/provisioner-secret-namespace": "default"}
			})
			h := world(t, class, kit.Claim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = kit.Ptr("secret") }),
				kit.Secret("s", map[string]string{"key": "v"}))
			h.Play(kit.Binder(h.API))
			h.Driver.Next("CreateVolume", append([]kit.Reply{{Code: codes.Unavailable, Text: "y", Done: true, Meanwhile: func() {
				leaves(h)()
				kit.Remove[*corev1.Secret](h.API, kube.Key{Namespace: kit.Namespace, Name: "s"})
			}}}, c.replies...)...)
			start(h)
			h.Horizon = time.Minute
			h.Settle()
			if got := len(requests(h)); got != 1 {
				t.Fatalf("%d calls within a minute", got)
			}
			if c.deny {
				h.API.Deny("get", "secrets")
			}
			h.Horizon = 3 * time.Hour
			h.Settle()
			_, made := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name})
			lines := fmt.Sprint(h.Log.Lines())
			if told := strings.Count(lines, "still trying: "); made != c.made || told != 1 {
				t.Errorf("made %v, told %d times\n%s", made, told, h.Trace())
			}
			const helps = `secrets "s" not found; nobody waits for the volume any more: create that secret, and what was begun is brought to its end; if it stays missing for 2 minutes, one try is made without it`
			if !strings.Contains(lines, helps) {
				t.Errorf("what helps is not told: %s", lines)
			}
			if _, end, _ := strings.Cut(lines, "look for it there"); strings.Contains(end, "create that secret") {
				t.Errorf("advice when nothing is tried any more: %s", end)
			}
			if ended := c.made || strings.Contains(lines, "look for it there"); ended != c.ends || len(requests(h)) > 2 {
				t.Errorf("ended %v after %d calls\n%s", ended, len(requests(h)), h.Trace())
			}
		})
	}
}

// crowded is a driver with no room in zone a.
type crowded struct{ *kit.Driver }

func (d crowded) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	if request.GetAccessibilityRequirements().GetPreferred()[0].GetSegments()["zone"] == "a" && d.isDown() {
		return d.Driver.CreateVolume(ctx, request)
	}
	if request.GetAccessibilityRequirements().GetPreferred()[0].GetSegments()["zone"] == "a" {
		return nil, fault.New(fault.CreateVolume, status.Error(codes.ResourceExhausted, "full"))
	}
	return d.Driver.CreateVolume(ctx, request)
}

// isDown tells that the script for the first call was not used yet.
func (d crowded) isDown() bool { return len(d.Calls("CreateVolume")) == 0 }

// TestFullNodeAfterAnOutage: one lost answer does not tie a pod to a node without room. Catches a provisioner that repeats the open
// request for ever, and one that forgets it.
func TestFullNodeAfterAnOutage(t *testing.T) {
	program := func(h *kit.Harness) {
		start(h, func(_ *claim.Options, d *claim.Deps) { d.Driver = crowded{h.Driver} })
	}
	choose := func(h *kit.Harness) {
		if selected(h) == "" {
			kit.Edit(h.API, dataKey, kit.OnNode("n2"))
		}
	}
	fill := func(h *kit.Harness) {
		schedule(h)
		h.Driver.Next("CreateVolume", kit.Reply{Code: codes.Unavailable, Text: "down"})
	}
	t.Run("wherever the program dies", func(t *testing.T) {
		kit.Crash(t, kit.Scenario{
			World: fill, Program: program, Users: []func(*kit.Harness){choose},
			Check: func(t testing.TB, h *kit.Harness) {
				if v, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok || len(h.Driver.Inventory()) != 1 || v.Spec.CSI == nil {
					t.Error("no volume", h.Trace())
				}
			},
		})
	})
	t.Run("the claim goes while it waits for another node: the old request is settled", func(t *testing.T) {
		h := kit.New(t)
		fill(h)
		h.Driver.Next("CreateVolume", full, full)
		h.Play(kit.Binder(h.API))
		start(h)
		h.Settle()
		if got := selected(h); got != "" || len(requests(h)) != 3 {
			t.Fatalf("on %q after %d calls\n%s", got, len(requests(h)), h.Trace())
		}
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
		h.Settle()
		all := requests(h)
		last := all[len(all)-1].GetAccessibilityRequirements().GetPreferred()[0].GetSegments()["zone"]
		if v, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok || v.Status.Phase != corev1.VolumeReleased || last != "a" {
			t.Errorf("asked for zone %q\n%s", last, h.Trace())
		}
	})
	t.Run("the claim goes after the next node was refused too", func(t *testing.T) {
		h := kit.New(t)
		fill(h)
		h.Driver.Next("CreateVolume", full, full, kit.Reply{Code: codes.AlreadyExists, Text: "another zone", Times: 2})
		h.Play(kit.Binder(h.API))
		start(h)
		h.Settle()
		choose(h)
		h.Horizon = 2 * time.Second
		h.Settle()
		kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
		h.Horizon = time.Hour
		h.Settle()
		if v, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: name}); !ok || v.Status.Phase != corev1.VolumeReleased {
			t.Error("what may have been made on the first node is forgotten", h.Trace())
		}
	})
}
