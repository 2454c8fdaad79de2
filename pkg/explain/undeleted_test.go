// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volumesnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

const (
	inUse   = "rpc error: code = FailedPrecondition desc = it is in use"
	noLine  = `rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /csi/csi.sock: connect: no such file or directory"`
	carryOn = "do not take the finalizer off"
	lookAt  = "see that the container of the driver runs"
)

// TestFailedDeletions: what the driver has said of a deletion keeps the object, as it keeps a claim from its volume. Catches an explanation that says
// only that the driver is asked.
func TestFailedDeletions(t *testing.T) {
	for _, c := range []struct{ name, said, advises string }{{"refused", inUse, carryOn}, {"nobody listens", noLine, lookAt}} {
		t.Run("volume, "+c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(released()...)
			v, _ := kit.Read[*corev1.PersistentVolume](h.API, kube.Key{Name: "pv"})
			h.Put(eventOf(h, "e1", v, time.Minute, "VolumeFailedDelete", c.said))
			report := readOnly(t, h, func() (*Report, error) {
				return Volume(h.Ctx, setting(h, askedDriver(flat())), Provisioner{}, "pv")
			})
			ofVolume("Delete", "in the way: the deletion failed, 60s ago: "+c.said, c.advises).check(t, report)
			if len(report.Events) != 1 {
				t.Errorf("the event is told %d times", len(report.Events))
			}
		})
		t.Run("content, "+c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.With(kit.Content(kit.Snapshot("monday", "data"), "vol", kit.Taken("snap-1"), func(content *kube.Content) {
				content.Name = wellknown.ContentName(string(kit.Snapshot("monday", "data").UID))
				content.Status.Error = &snapv1.VolumeSnapshotError{Message: &c.said}
			}), kit.Finalizers(wellknown.FinalizerContent), kit.Deleted), kit.SnapshotClass(kit.SnapshotClassName))
			ofContent("Delete", "Asks the driver to delete snapshot snap-1", c.advises).check(t, readOnly(t, h, func() (*Report, error) {
				return Content(h.Ctx, setting(h, askedDriver(flat())), Snapshotter{}, wellknown.ContentName(string(kit.Snapshot("monday", "data").UID)))
			}))
		})
	}
}

// TestUnsettled: a request whose outcome is open is repeated from the record, also without the class. Catches an explanation that says of it that
// nothing goes on before somebody makes the class again.
func TestUnsettled(t *testing.T) {
	for _, c := range []struct {
		name, said string
		want       int
	}{{"open", "rpc error: code = Internal desc = what?", 1}, {"certain", inUse, 0}, {"not sent", noLine, 0}, {"not of the driver", "what?", 0}} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(kit.Claim("data"))
			data, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.Key{Namespace: kit.Namespace, Name: "data"})
			h.Put(eventOf(h, "e1", data, time.Minute, "ProvisioningFailed", c.said))
			m := ofClaim("Reject", `storageClass "fast" not found`, "create StorageClass fast").check(t, explainClaim(t, h, askedDriver(flat())))
			if why := strings.Join(m.Hindrances, ""); len(m.Hindrances) != c.want || strings.Contains(why, "the running provisioner repeats the very same one") != (c.want > 0) {
				t.Error(why)
			}
		})
	}
}

// TestNamespaceThatGoes: for a moment nothing in a namespace says that it goes. Catches an explanation that finds all well then.
func TestNamespaceThatGoes(t *testing.T) {
	for _, goes := range []bool{false, true} {
		h := kit.New(t)
		here := &corev1.Namespace{ObjectMeta: meta1(kit.Namespace)}
		if goes {
			kit.Deleted(here)
			here.Finalizers = []string{"a/b"}
		}
		h.Put(here, kit.SnapshotClass(kit.SnapshotClassName), kit.Snapshot("monday", "data"))
		h.Put(bound()...)
		for _, report := range []*Report{explainClaim(t, h, askedDriver(flat())), explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Own)} {
			if got := strings.Contains(strings.Join(report.Notes, " "), "Namespace default is being deleted"); got != goes {
				t.Errorf("%v: %v", goes, report.Notes)
			}
		}
	}
}

// TestSameSentence: two programs may do the same. Catches a text that says of the second one only that it was said.
func TestSameSentence(t *testing.T) {
	const settled = "Does nothing for now: all is settled, and nothing is to be done."
	r := &Report{Machines: []Machine{{Program: binder, Step: "Ignore", Sentence: settled}, {Program: snapshotter, Step: "Ignore", Sentence: settled}}}
	if text := written(t, r, "text"); strings.Count(text, settled) != 2 {
		t.Error(text)
	}
}
