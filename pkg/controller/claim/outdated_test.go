// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// picky is a driver that has the same answer for all requests of a sort, which leaves open what became of them.
type picky struct {
	*kit.Driver
	code   codes.Code
	spurns func(*csi.CreateVolumeRequest) bool
}

func (p picky) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	if p.spurns(request) {
		p.Next("CreateVolume", kit.Reply{Code: p.code, Text: "no such thing"})
	}
	return p.Driver.CreateVolume(ctx, request)
}

func isOfWrongPool(r *csi.CreateVolumeRequest) bool { return r.GetParameters()["pool"] == "wrogn" }

func isForZoneA(r *csi.CreateVolumeRequest) bool {
	return r.GetAccessibilityRequirements().GetPreferred()[0].GetSegments()["zone"] == "a"
}

func ofPool(uid, pool string) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) { c.UID, c.Parameters = types.UID(uid), map[string]string{"pool": pool} }
}

// TestOutdatedRequests: the outcome of a request is open, and the class that it was made from was corrected, or the node that it is for is gone,
// so that it never comes to a good end. The claim is told so, and how to get out; whoever deletes it and makes it anew has a volume at once, by
// the class and the node of then. Catches one that repeats the same words for ever while the claim looks as if it were only slow, and one whose
// advice does not help.
func TestOutdatedRequests(t *testing.T) {
	removeClass := func(h *kit.Harness) { kit.Remove[*storagev1.StorageClass](h.API, kube.Key{Name: kit.ClassName}) }
	for _, c := range []struct {
		name, told string
		spurns     func(*csi.CreateVolumeRequest) bool
		change     func(*kit.Harness)
	}{
		{"class corrected", `StorageClass "fast" was made anew, and the request is what the old one said`, isOfWrongPool, func(h *kit.Harness) {
			removeClass(h)
			h.Put(kit.Class(kit.ClassName, kit.WaitForConsumer, ofPool("right", "right")))
		}},
		{"class gone", `StorageClass "fast" does not exist any more`, isOfWrongPool, removeClass},
		{"node gone", `the request is for node "n1", which does not exist any more`, isForZoneA, func(h *kit.Harness) {
			kit.Remove[*corev1.Node](h.API, kube.Key{Name: "n1"})
			kit.Remove[*storagev1.CSINode](h.API, kube.Key{Name: "n1"})
		}},
	} {
		for _, code := range []codes.Code{codes.Internal, codes.Unknown, codes.DeadlineExceeded, codes.Unavailable} {
			t.Run(c.name+" "+code.String(), func(t *testing.T) {
				h := kit.New(t)
				h.Put(kit.Class(kit.ClassName, kit.WaitForConsumer, ofPool("wrong", "wrogn")), kit.Claim("data", kit.OnNode("n1")))
				h.Put(twoZones()...)
				h.Driver.Capabilities = withTopology()
				start(h, func(_ *claim.Options, d *claim.Deps) { d.Driver = picky{h.Driver, code, c.spurns} })
				h.Horizon = time.Minute
				h.Settle()
				if told := tellsOutdated(h); len(told) != 0 {
					t.Fatalf("told before anything has changed: %q", told)
				}
				c.change(h)
				h.Horizon = time.Hour
				h.Settle()
				told := tellsOutdated(h)
				if len(told) != 1 || !strings.Contains(told[0], c.told) || !strings.Contains(told[0], "; delete this claim and make it anew: ") {
					t.Errorf("told is %q", told)
				}
				h.Put(kit.Class(kit.ClassName, kit.WaitForConsumer, ofPool("right", "right")))
				kit.Remove[*corev1.PersistentVolumeClaim](h.API, dataKey)
				h.Horizon = time.Minute
				h.Settle()
				h.Put(kit.Claim("data", kit.OnNode("n2"), func(c *corev1.PersistentVolumeClaim) { c.UID = "anew" }))
				h.Settle()
				if _, ok := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: "pvc-anew"}); !ok {
					t.Errorf("the new claim has no volume\n%s", h.Trace())
				}
			})
		}
	}
}

func tellsOutdated(h *kit.Harness) []string {
	return slices.DeleteFunc(h.Log.Lines(), func(line string) bool {
		return !strings.HasPrefix(line, failed) || !strings.Contains(line, provision.Outdated)
	})
}
