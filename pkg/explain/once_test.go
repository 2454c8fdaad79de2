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

// TestSaidOnce: one error stands in the status of the content, in that of the snapshot, in the step and in the events of both, mostly with the remedy
// behind it. Catches an explanation that prints it as often, so that one missing secret fills the screen.
func TestSaidOnce(t *testing.T) {
	h := kit.New(t)
	h.Put(with(sourceOf(kit.DriverName), kit.Snapshot("monday", "data"), kit.SnapshotClass(kit.SnapshotClassName, lostOfSnapshots))...)
	runBinding(h)
	name := wellknown.ContentName(string(kit.Snapshot("monday", "data").UID))
	runContents(h, name)
	runBinding(h)
	h.Log.Clear()
	monday, _ := kit.Read[*snapv1.VolumeSnapshot](h.API, kube.Key{Namespace: kit.Namespace, Name: "monday"})
	content, _ := kit.Read[*kube.Content](h.API, kube.Key{Name: name})
	if monday.Status == nil || monday.Status.Error == nil || content.Status == nil || content.Status.Error == nil {
		t.Fatalf("the room tells nothing: %+v, %+v", monday.Status, content.Status)
	}
	said := *content.Status.Error.Message
	h.Put(eventOf(h, "e1", monday, time.Minute, "SnapshotCreationFailed", *monday.Status.Error.Message), eventOf(h, "e2", content, time.Minute, "SnapshotCreationFailed", said))
	report := explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Own)
	m := ofContent("Record", `secrets \"lost\" not found`, "create that secret").check(t, report)
	text := written(t, report, "text")
	whole := strings.Join(strings.Fields(text), " ")
	for what, want := range map[string]int{
		"error getting secret lost": 1, "create that secret": 1, "what helps: ": len(m.Advice), "error in status as said above": 1,
		"and looks again by itself: as said above [Record]": 1, "Warning SnapshotCreationFailed, VolumeSnapshot default/monday: as said above": 1,
	} {
		if n := strings.Count(whole, what); n != want {
			t.Errorf("%q is there %d times", what, n)
		}
	}
	if strings.Count(written(t, report, "json"), "error getting secret lost") < 5 {
		t.Error("what a program reads is cut")
	}
	if t.Failed() {
		t.Log("\n" + text)
	}
}

// TestAnswerOfTheDriverOnce: the same for what a driver has said of a claim. An answer of another time, which differs, is told.
func TestAnswerOfTheDriverOnce(t *testing.T) {
	h := kit.New(t)
	data := kit.Claim("data")
	h.Put(data, kit.Class(kit.ClassName))
	data, _ = kit.Read[*corev1.PersistentVolumeClaim](h.API, kube.KeyOf(data))
	const answer = "failed to provision volume: rpc error: code = ResourceExhausted desc = pool gold has no room for the volume"
	h.Put(eventOf(h, "e1", data, time.Hour, "ProvisioningFailed", strings.ReplaceAll(answer, "gold", "lead")), eventOf(h, "e2", data, time.Minute, "ProvisioningFailed", answer))
	whole := strings.Join(strings.Fields(written(t, explainClaim(t, h, askedDriver(flat())), "text")), " ")
	if strings.Count(whole, "pool gold has") != 1 || strings.Count(whole, "pool lead has") != 1 || !strings.Contains(whole, "ProvisioningFailed, PersistentVolumeClaim default/data: as said above") {
		t.Error(whole)
	}
}

// TestOnce: what is short is said again, and an end that was said goes at the earliest place.
func TestOnce(t *testing.T) {
	p := &page80{advice: []string{"do this; and that", ""}}
	for _, c := range []struct{ text, want string }{
		{"reading: the storage of the driver does not answer; do this; and that", "reading: the storage of the driver does not answer"},
		{"reading: the storage of the driver does not answer", "as said above"},
		{"writing: the storage of the driver does not answer; do this; and that", "writing: as said above"},
		{"writing: the storage of the driver does not answer at all", "writing: the storage of the driver does not answer at all"},
		{"no room", "no room"}, {"no room", "no room"}, {"", ""},
	} {
		if got := p.once(c.text); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
