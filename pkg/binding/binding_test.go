// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

func dynamic() *snapv1.VolumeSnapshot {
	claim := "data"
	return &snapv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns1", Name: "snap", UID: "u1"},
		Spec:       snapv1.VolumeSnapshotSpec{Source: snapv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim}},
	}
}

func imported(content string) *snapv1.VolumeSnapshot {
	s := dynamic()
	s.Spec.Source = snapv1.VolumeSnapshotSource{VolumeSnapshotContentName: &content}
	return s
}

func content(source string, namespace, name string, uid types.UID) *snapv1.VolumeSnapshotContent {
	handle := "h"
	c := &snapv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	c.Spec.VolumeSnapshotRef = corev1.ObjectReference{Namespace: namespace, Name: name, UID: uid}
	if strings.Contains(source, "volume") {
		c.Spec.Source.VolumeHandle = &handle
	}
	if strings.Contains(source, "snapshot") {
		c.Spec.Source.SnapshotHandle = &handle
	}
	return c
}

func TestJudge(t *testing.T) {
	const other = "VolumeSnapshotContent [c] is bound to a different snapshot"
	for _, c := range []struct {
		name     string
		snapshot *snapv1.VolumeSnapshot
		content  *snapv1.VolumeSnapshotContent
		want     Verdict
	}{
		{"S42 no content yet", imported("c"), nil,
			Verdict{Missing, wellknown.ReasonSnapshotContentMissing, "VolumeSnapshotContent is missing"}},
		{"S41 free content", imported("c"), content("snapshot", "ns1", "snap", ""), Verdict{State: Unbound}},
		{"S41 bound content", imported("c"), content("snapshot", "ns1", "snap", "u1"), Verdict{State: Bound}},
		{"S44 content for another name", imported("c"), content("snapshot", "ns1", "other", ""),
			Verdict{Refused, wellknown.ReasonSnapshotContentMisbound, other}},
		{"S44 B007 content for another namespace", imported("c"), content("snapshot", "ns2", "snap", ""),
			Verdict{Refused, wellknown.ReasonSnapshotContentMisbound, other}},
		{"S50 B059 content of an earlier namesake", imported("c"), content("snapshot", "ns1", "snap", "u0"),
			Verdict{Refused, wellknown.ReasonSnapshotContentMisbound, other + ": its spec.volumeSnapshotRef.uid is that of another " +
				"snapshot of the same name; to bind it here, clear that field of VolumeSnapshotContent c"}},
		{"S45 dynamic content", imported("c"), content("volume", "ns1", "snap", "u1"),
			Verdict{Refused, wellknown.ReasonSnapshotContentMismatch,
				"VolumeSnapshotContent is dynamically provisioned while expecting a pre-provisioned one"}},
		{"S1 own content", dynamic(), content("volume", "ns1", "snap", "u1"), Verdict{State: Bound}},
		{"S23 own name, other UID", dynamic(), content("volume", "ns1", "snap", "u2"),
			Verdict{Refused, wellknown.ReasonSnapshotContentMisbound, other}},
		{"S34 own name, no UID", dynamic(), content("volume", "ns1", "snap", ""),
			Verdict{Refused, wellknown.ReasonSnapshotContentMisbound, other}},
		{"S24 own name, pre-provisioned", dynamic(), content("snapshot", "ns1", "snap", "u1"),
			Verdict{Refused, wellknown.ReasonSnapshotContentMismatch,
				"VolumeSnapshotContent c is pre-provisioned while expecting a dynamically provisioned one"}},
		{"own content with both handles", dynamic(), content("volume snapshot", "ns1", "snap", "u1"),
			Verdict{Refused, wellknown.ReasonSnapshotHandleSet,
				"Snapshot handle should not be set in content ns1/snap for dynamic provisioning"}},
	} {
		if got := Judge(c.snapshot, c.content); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestNamesOfContents(t *testing.T) {
	bound := dynamic()
	other := "elsewhere"
	bound.Status = &snapv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &other}
	for _, c := range []struct {
		name     string
		snapshot *snapv1.VolumeSnapshot
		want, in string
	}{
		{"dynamic", dynamic(), "snapcontent-u1", "-"},
		{"imported", imported("c"), "c", "c"},
		{"S89 a status that names something else", bound, "snapcontent-u1", "elsewhere"},
		{"no source at all", &snapv1.VolumeSnapshot{}, "", "-"},
	} {
		if got := ContentName(c.snapshot); got != c.want {
			t.Errorf("%s: ContentName %q, want %q", c.name, got, c.want)
		}
		if got := Names(c.snapshot, c.in); got != (c.in != "-") {
			t.Errorf("%s: Names(%q) = %v", c.name, c.in, got)
		}
	}
	if Names(&snapv1.VolumeSnapshot{}, "") {
		t.Error("nobody names the content without a name")
	}
}

func TestIsMutual(t *testing.T) {
	s, name := dynamic(), "c"
	c := content("volume", "ns1", "snap", "u1")
	if IsMutual(s, c) {
		t.Error("a snapshot without status is not bound")
	}
	s.Status = &snapv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &name}
	if !IsMutual(s, c) {
		t.Error("both point at each other")
	}
	c.Spec.VolumeSnapshotRef.UID = "u2"
	if IsMutual(s, c) {
		t.Error("S34 the content points elsewhere")
	}
}

func TestIsMember(t *testing.T) {
	s := dynamic()
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "VolumeGroupSnapshot"}}
	if IsMember(s) {
		t.Error("a kind of another group")
	}
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "groupsnapshot.storage.k8s.io/v1beta2", Kind: "VolumeGroupSnapshot"}}
	if !IsMember(s) || ContentName(s) != "" {
		t.Error("a member has the content that its status names, whatever the version of the group API")
	}
}
