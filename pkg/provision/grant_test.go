// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
)

// from is a claim of ns1 that wants its data from ns2, while the feature is on.
func from(group *string, kind, name string) func(*ClaimInput) {
	return func(in *ClaimInput) {
		can(csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, csi.ControllerServiceCapability_RPC_CLONE_VOLUME)(in)
		in.CrossNamespace = true
		in.Claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: group, Kind: kind, Name: name, Namespace: of("ns2")}
	}
}

// grants are one grant per argument, each made of its parts.
func grants(each ...[]any) func(*ClaimInput) {
	return func(in *ClaimInput) {
		for _, parts := range each {
			var g Grant
			for _, part := range parts {
				switch p := part.(type) {
				case GrantFrom:
					g.From = append(g.From, p)
				case GrantTo:
					g.To = append(g.To, p)
				}
			}
			in.Grants.All = append(in.Grants.All, g)
		}
	}
}

func TestGrants(t *testing.T) {
	const snapshots = "snapshot.storage.k8s.io"
	const read, readClaim = "ReadSource: {VolumeSnapshot ns2 snap}", "ReadSource: {PersistentVolumeClaim ns2 src}"
	const denied = "Reject: accessing ns2/snap of VolumeSnapshot dataSource from ns1/data isn't allowed"
	const deniedClaim = "Reject: accessing ns2/src of PersistentVolumeClaim dataSource from ns1/data isn't allowed"
	snap, src := from(of(snapshots), "VolumeSnapshot", "snap"), from(nil, "PersistentVolumeClaim", "src")
	claims := GrantFrom{Kind: "PersistentVolumeClaim", Namespace: "ns1"}
	toAll, toSnap := GrantTo{Group: snapshots, Kind: "VolumeSnapshot"}, GrantTo{Group: snapshots, Kind: "VolumeSnapshot", Name: "snap"}
	toClaims, toSrc := GrantTo{Kind: "PersistentVolumeClaim"}, GrantTo{Kind: "PersistentVolumeClaim", Name: "src"}
	with := func(parts ...any) []any { return parts }
	runClaims(t, []claimRow{
		{"T50 all snapshots", edits{snap, grants(with(claims, toAll))}, read},
		{"T50 this snapshot", edits{snap, grants(with(claims, toSnap))}, read},
		{"T50 all claims", edits{src, grants(with(claims, toClaims))}, readClaim},
		{"T50 this claim", edits{src, grants(with(claims, toSrc))}, readClaim},
		{"T50 the empty group and none are one", edits{from(of(""), "PersistentVolumeClaim", "src"), grants(with(claims, toSrc))}, readClaim},
		{"T50 one of several, in one of several", edits{snap, grants(with(), with(GrantFrom{Kind: "x"}, claims, toSrc, toSnap))}, read},
		{"T51 no grant", edits{snap}, denied},
		{"T51 no grant for a clone", edits{src}, deniedClaim},
		{"T51 an empty grant", edits{snap, grants(with())}, denied},
		{"T51 from another group", edits{snap, grants(with(GrantFrom{Group: "x", Kind: "PersistentVolumeClaim", Namespace: "ns1"}, toSnap))}, denied},
		{"T51 from another kind", edits{snap, grants(with(GrantFrom{Kind: "Pod", Namespace: "ns1"}, toSnap))}, denied},
		{"T51 from another namespace", edits{snap, grants(with(GrantFrom{Kind: "PersistentVolumeClaim", Namespace: "ns3"}, toSnap))}, denied},
		{"T51 to another group", edits{snap, grants(with(claims, GrantTo{Kind: "VolumeSnapshot"}))}, denied},
		{"T51 to a group, and the claim has none", edits{src, grants(with(claims, GrantTo{Group: "x", Kind: "PersistentVolumeClaim"}))}, deniedClaim},
		{"T51 to another kind", edits{snap, grants(with(claims, GrantTo{Group: snapshots, Kind: "VolumeSnapshotContent"}))}, denied},
		{"T51 to another name", edits{snap, grants(with(claims, GrantTo{Group: snapshots, Kind: "VolumeSnapshot", Name: "other"}))}, denied},
		// Catches one that looks at all grants together.
		{"T51 from in one grant and to in another", edits{snap, grants(with(claims), with(toSnap))}, denied},
		{"T52 the claim's own namespace", edits{snap, func(in *ClaimInput) { in.Claim.Spec.DataSourceRef.Namespace = of("ns1") }}, "ReadSource: {VolumeSnapshot ns1 snap}"},
		{"T52 no namespace", edits{snap, func(in *ClaimInput) { in.Claim.Spec.DataSourceRef.Namespace = nil }}, "ReadSource: {VolumeSnapshot ns1 snap}"},
		{"T52 W22 the empty namespace", edits{snap, func(in *ClaimInput) { in.Claim.Spec.DataSourceRef.Namespace = of("") }}, "ReadSource: {VolumeSnapshot ns1 snap}"},
		// Catches one that asks for grants which nobody has read while the feature is off.
		{"T52 W22 the feature is off", edits{snap, func(in *ClaimInput) { in.CrossNamespace = false }},
			"Reject: dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled"},
		{"W25 grants cannot be read", edits{snap, func(in *ClaimInput) { in.Grants.Unknown = errors.New("no such kind") }},
			denied + ": ReferenceGrants cannot be read: no such kind"},
		{"grants are on their way", edits{snap, func(in *ClaimInput) { in.Grants = Grants{Unknown: errors.New("not yet"), Coming: true} }},
			"waiting " + denied + ": ReferenceGrants cannot be read: not yet"},
		{"a populator's source needs a grant too", edits{from(of("x"), "MyPopulator", "p"), grants(with(claims, GrantTo{Group: "x", Kind: "MyPopulator"}))}, "LeaveToPopulator"},
		{"a populator's source without", edits{from(of("x"), "MyPopulator", "p")}, "Reject: accessing ns2/p of MyPopulator dataSource from ns1/data isn't allowed"},
	})
}

// TestForeignCloneSource: the message names the namespace that was looked in, not the claim's.
func TestForeignCloneSource(t *testing.T) {
	in := plain(from(nil, "PersistentVolumeClaim", "src"), grants([]any{GrantFrom{Kind: "PersistentVolumeClaim", Namespace: "ns1"}, GrantTo{Kind: "PersistentVolumeClaim"}}))
	in.Source = &SourceState{ClaimErr: errors.New("not found")}
	const text = `Reject: error getting handle for DataSource Type PersistentVolumeClaim by Name src: error getting PVC src (namespace "ns2") from api server: not found`
	if got := show(NextClaimStep(in)); got != text {
		t.Errorf("got\n%s, want\n%s", got, text)
	}
}
