// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volumesnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

const (
	refusedSecret = `error getting secret lost in namespace default: secrets "lost" is forbidden: User "system:serviceaccount:csi:csi-tandem" cannot get resource "secrets"`
	missedSecret  = `error getting secret lost in namespace default: secrets "lost" not found`
	grantIt       = "add deploy/components/secrets to deploy/pair"
)

// TestRefusedAndMissing: the sidecar may lack the right to see that the secret is missing. Catches an explanation for somebody who may look that
// tells of one of the two, so that the reader finds the other when the first is done; and one that goes on to speak of what is over.
func TestRefusedAndMissing(t *testing.T) {
	for _, c := range []struct {
		name, last string
		hindrances int
		advises    string
	}{
		{"both", refusedSecret + "; " + grantIt, 1, grantIt}, {"only missing", missedSecret + "; create that secret", 0, "create that secret"},
	} {
		t.Run("claim, "+c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.Claim("data"), kit.Class(kit.ClassName, lost))
			data, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "data"})
			h.Put(eventOf(h, "e1", data, time.Minute, "ProvisioningFailed", c.last))
			m := ofClaim("Reject", missedSecret, "create that secret").check(t, explainClaim(t, h, askedDriver(flat())))
			if advice := strings.Join(m.Advice, "; "); len(m.Hindrances) != c.hindrances || !strings.Contains(advice, c.advises) {
				t.Errorf("%q, advice %q", m.Hindrances, m.Advice)
			}
		})
	}
}

// TestRefusedContents is the same for snapshots, and for a secret that is there: what the snapshotter may not do stands in the status only.
func TestRefusedContents(t *testing.T) {
	s := kit.With(kit.Snapshot("monday", "data"), kit.Finalizers(wellknown.FinalizerSnapshotSource, wellknown.FinalizerSnapshotBound))
	for _, c := range []struct {
		name, secret, said string
		step               string
		hindrance, advises string
	}{
		{"refused", "creds", refusedSecret + "; " + grantIt, "Create", "the snapshotter could not go on when it last tried, 60s ago: " + refusedSecret, grantIt},
		{"refused and missing", "lost", refusedSecret + "; " + grantIt, "Record", "the snapshotter could not go on when it last tried", grantIt},
		{"made since", "creds", missedSecret + "; create that secret", "Create", "", ""},
		{"missing", "lost", missedSecret + "; create that secret", "Record", "", "create that secret"},
		{"an answer of the driver", "creds", "rpc error: code = ResourceExhausted desc = full", "Create", "", "there is no room"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(with(sourceOf(kit.DriverName), s, kit.SnapshotClass(kit.SnapshotClassName), kit.Content(s, "vol", func(content *kube.Content) {
				content.Name = wellknown.ContentName(string(s.UID))
				kube.SetAnnotation(content, wellknown.AnnSnapshotDeletionSecretName, c.secret)
				kube.SetAnnotation(content, wellknown.AnnSnapshotDeletionSecretNamespace, kit.Namespace)
				content.Status = &snapv1.VolumeSnapshotContentStatus{Error: &snapv1.VolumeSnapshotError{Message: &c.said, Time: kit.Ptr(metav1.NewTime(kit.Start.Add(-time.Minute)))}}
			}))...)
			m := ofContent(c.step, c.hindrance, c.advises).check(t, explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Own))
			if (len(m.Hindrances) > 0) != (c.hindrance != "") {
				t.Errorf("in the way: %q", m.Hindrances)
			}
		})
	}
}

// TestNoRoomNowhere: a driver that is asked for a place where no node is says that there is no room. Catches advice to make some there.
func TestNoRoomNowhere(t *testing.T) {
	for _, c := range []struct {
		name, zone string
		want       bool
	}{{"a place of nobody", "x", false}, {"a place that is full", "a", true}} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(zones()...)
			h.Put(kit.Claim("data"), kit.Class(kit.ClassName, in(zone, c.zone)))
			data, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "data"})
			h.Put(eventOf(h, "e1", data, time.Minute, "ProvisioningFailed", "rpc error: code = ResourceExhausted desc = no room in x"))
			advises := "make some"
			if !c.want {
				advises = "kubectl edit storageclass fast"
			}
			m := ofClaim("Create", "the driver has answered, 60s ago", advises).check(t, explainClaim(t, h, askedDriver(placed())))
			if got := strings.Contains(strings.Join(m.Advice, " "), "make some"); got != c.want {
				t.Errorf("%q", m.Advice)
			}
		})
	}
}
