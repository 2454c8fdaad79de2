// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volumesnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestMissingObjects: "not found" sends people to look for an object where the namespace is wrong, or the kind. Nothing is said of what
// may not be read.
func TestMissingObjects(t *testing.T) {
	here := &corev1.Namespace{ObjectMeta: meta1(kit.Namespace)}
	ask := map[string]func(*kit.Harness, string, string) error{
		"claim": func(h *kit.Harness, namespace, name string) error {
			_, err := Claim(h.Ctx, setting(h, Driver{}), Provisioner{}, namespace, name)
			return err
		},
		"volume": func(h *kit.Harness, _, name string) error {
			_, err := Volume(h.Ctx, setting(h, Driver{}), Provisioner{}, name)
			return err
		},
		"snapshot": func(h *kit.Harness, namespace, name string) error {
			_, err := Snapshot(h.Ctx, setting(h, Driver{}), Snapshotter{}, namespace, name)
			return err
		},
		"content": func(h *kit.Harness, _, name string) error {
			_, err := Content(h.Ctx, setting(h, Driver{}), Snapshotter{}, name)
			return err
		},
	}
	for _, c := range []struct {
		kind, namespace, name string
		deny                  string
		want, not             string
	}{
		{"claim", "team-x", "data", "", "reading claim team-x/data: namespace team-x does not exist", "not found"},
		{"snapshot", "team-x", "monday", "", "reading VolumeSnapshot team-x/monday: namespace team-x does not exist", "not found"},
		{"claim", "team-x", "data", "namespaces", `persistentvolumeclaims "data" not found`, "does not exist"},
		{"claim", kit.Namespace, "nobody", "", `persistentvolumeclaims "nobody" not found`, "there is a"},
		{"claim", kit.Namespace, "monday", "", `not found; there is a VolumeSnapshot of that name: snapshotter explain vs/monday -n default`, ""},
		{"claim", kit.Namespace, "pv", "", `not found; there is a PersistentVolume of that name: provisioner explain pv/pv`, "-n"},
		{"snapshot", kit.Namespace, "data", "", `not found; there is a PersistentVolumeClaim of that name: provisioner explain pvc/data -n default`, ""},
		{"snapshot", kit.Namespace, "given", "", `not found; there is a VolumeSnapshotContent of that name: snapshotter explain vsc/given`, ""},
		{"content", "", "pv", "", `not found; there is a PersistentVolume of that name`, ""},
		{"volume", "", "data", "", `persistentvolumes "data" not found`, "there is a"},
		{"volume", "", "given", "persistentvolumes", "forbidden", "there is a"},
	} {
		t.Run(c.kind+" "+c.namespace+"/"+c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(here, kit.Claim("data"), kit.Volume("pv"), kit.Snapshot("monday", "data"), kit.NamedContent("given"))
			if c.deny != "" {
				h.API.Deny("get", c.deny)
			}
			err := ask[c.kind](h, c.namespace, c.name)
			if err == nil || !strings.Contains(err.Error(), c.want) || c.not != "" && strings.Contains(err.Error(), c.not) {
				t.Errorf("%v, want %q and not %q", err, c.want, c.not)
			}
		})
	}
}

// TestImportedClass: the default class is for snapshots that are taken. Catches an explanation that shows it for one that was brought in, whose
// content has a class of its own, or none.
func TestImportedClass(t *testing.T) {
	imported := kit.Snapshot("monday", "", kit.FromContent("given"), func(s *snapv1.VolumeSnapshot) { s.Spec.VolumeSnapshotClassName = nil })
	for _, c := range []struct {
		name     string
		snapshot *snapv1.VolumeSnapshot
		content  []kube.Object
		want     string
	}{
		{"taken", kit.Snapshot("monday", "data", func(s *snapv1.VolumeSnapshot) { s.Spec.VolumeSnapshotClassName = nil }), nil, "none named, the default is taken"},
		{"named", kit.Snapshot("monday", "", kit.FromContent("given"), func(s *snapv1.VolumeSnapshot) { s.Spec.VolumeSnapshotClassName = kit.Ptr("gold") }), nil, "gold"},
		{"imported with a class", imported, []kube.Object{kit.NamedContent("given", func(c *kube.Content) { c.Spec.VolumeSnapshotClassName = kit.Ptr("gold") })},
			"none named; its VolumeSnapshotContent has gold"},
		{"imported without one", imported, []kube.Object{kit.NamedContent("given", func(c *kube.Content) { c.Spec.VolumeSnapshotClassName = nil })},
			"none named, and its VolumeSnapshotContent has none"},
		{"imported, and the content is not there", imported, nil, "none named, and none needed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(c.snapshot)
			h.Put(c.content...)
			report := explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Own)
			if got := report.Object.State[1]; got != (Fact{"class", c.want}) {
				t.Errorf("%v, want %q", got, c.want)
			}
		})
	}
}

// TestUnknownHandle: neither handle nor driver of a content can be changed, which nobody sees from the error. Catches an explanation
// that shows the error and leaves it at that.
func TestUnknownHandle(t *testing.T) {
	imported := kit.Snapshot("monday", "", kit.FromContent("given"))
	for _, c := range []struct {
		name, message, advises string
	}{
		{"not listed", "Failed to check and update snapshot content: failed to list snapshot for content given: \"can not find snapshot for snapshotID snap-9\"",
			`what the snapshot is called there, to the letter; if "snap-9" comes to be there, this goes on by itself; ` +
				"if it is called otherwise, or is of another driver, neither can be changed here: kubectl delete volumesnapshot -n default monday; " +
				"kubectl delete volumesnapshotcontent given --ignore-not-found; then snapshotter import -n default monday --handle=HANDLE --class=gold"},
		{"not known", "Failed to check and update snapshot content: failed to list snapshot for content given: \"rpc error: code = NotFound desc = what?\"", "then snapshotter import"},
		{"not to be seen", "Failed to check and update snapshot content: failed to list snapshot for content given: \"rpc error: code = PermissionDenied desc = no\"",
			"the secret that VolumeSnapshotClass gold names"},
		{"of something else", "the class is missing", "docs/operations.md says what helps against that"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(imported, kit.SnapshotClass("gold"), kit.NamedContent("given", func(content *kube.Content) {
				content.Spec.Source.SnapshotHandle, content.Spec.VolumeSnapshotClassName = kit.Ptr("snap-9"), kit.Ptr("gold")
				content.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: kit.Namespace, Name: "monday", UID: imported.UID}
				content.Status = &snapv1.VolumeSnapshotContentStatus{ReadyToUse: kit.Ptr(false), Error: &snapv1.VolumeSnapshotError{Message: &c.message}}
			}))
			report := explainSnapshot(t, h, askedDriver(flat()), volumesnapshot.Own)
			m := ofContent("Poll", "asks whether snapshot snap-9 is ready", c.advises).check(t, report)
			if got := strings.Join(factTexts(m.Object.State), " "); !strings.Contains(got, "class gold") || !strings.Contains(got, "snapshot snap-9, as whoever made the content says") {
				t.Errorf("the content's state is %s", got)
			}
		})
	}
}

func factTexts(facts []Fact) []string {
	var all []string
	for _, f := range facts {
		all = append(all, f.Name+" "+f.Value)
	}
	return all
}
