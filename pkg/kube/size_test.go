// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// bulk is an API server that has made objects up to be listed, and no news.
type bulk struct {
	kube.Client
	list func(kube.Resource) kruntime.Object
}

func (b bulk) List(_ context.Context, r kube.Resource, _ string, _ metav1.ListOptions) (kruntime.Object, error) {
	return b.list(r), nil
}

func (b bulk) Watch(_ context.Context, _ kube.Resource, _ string, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, errors.New("lists only")
	}
	return watch.NewFake(), nil
}

// pairs are as many bound claims and volumes, as they look in a cluster.
func pairs(n int, driver string) bulk {
	return bulk{list: func(r kube.Resource) kruntime.Object {
		if r.Kind == "PersistentVolume" {
			list := &corev1.PersistentVolumeList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
			for i := range n {
				list.Items = append(list.Items, *volumeOfPair(i, driver))
			}
			return list
		}
		list := &corev1.PersistentVolumeClaimList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
		for i := range n {
			list.Items = append(list.Items, *claimOfPair(i, driver))
		}
		return list
	}}
}

func metaOf(namespace, name string, i int, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(fmt.Sprintf("%08d-0000-4000-8000-000000000000", i)), ResourceVersion: fmt.Sprint(1_000_000 + i),
		CreationTimestamp: metav1.Now(), Annotations: annotations, Finalizers: []string{"kubernetes.io/protection", "example.com/another"},
		Labels:        map[string]string{"app.kubernetes.io/name": "database", "app.kubernetes.io/instance": fmt.Sprint("instance-", i)},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "controller", Operation: "Update", FieldsV1: &metav1.FieldsV1{Raw: make([]byte, 900)}}},
	}
}

func claimOfPair(i int, driver string) *corev1.PersistentVolumeClaim {
	claim := kit.Claim("data", kit.BoundTo(fmt.Sprintf("pvc-%08d-0000-4000-8000-000000000000", i)))
	claim.ObjectMeta = metaOf(fmt.Sprint("namespace-", i%50), fmt.Sprint("data-database-", i), i, map[string]string{
		wellknown.AnnStorageProvisioner: driver, wellknown.AnnBetaStorageProvisioner: driver,
		"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
	})
	return claim
}

func volumeOfPair(i int, driver string) *corev1.PersistentVolume {
	claim := claimOfPair(i, driver)
	volume := kit.Volume(claim.Spec.VolumeName, kit.ClaimedBy(claim))
	volume.ObjectMeta = metaOf("", volume.Name, i, map[string]string{
		wellknown.AnnProvisionedBy: driver, wellknown.AnnDeletionSecretName: "", wellknown.AnnDeletionSecretNamespace: "",
	})
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{
		Driver: driver, VolumeHandle: fmt.Sprintf("%08d-0001-0000-0000-handle-of-a-volume", i), FSType: "ext4",
		VolumeAttributes: map[string]string{"pool": "fast", "storage.kubernetes.io/csiProvisionerIdentity": "1790000000000-1234-" + driver},
	}
	return volume
}

// heap is what is in use after a full collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// PP-3: a bound claim and its volume take little memory, and those of other drivers less. Catches caches of
// whole objects, which take about 9 KiB for a pair, and trimmed ones that are kept as structs and maps.
func TestSizeOfCaches(t *testing.T) {
	const n = 2_000
	for _, row := range []struct {
		name, driver string
		most         int64
	}{
		{"PP-3 pairs of the driver", kit.DriverName, 2048},
		{"PP-3 pairs of another driver", "other.csi.example", 1792},
	} {
		t.Run(row.name, func(t *testing.T) {
			client := pairs(n, row.driver)
			claims := kube.NewInformer(client, kube.InformerOptions[*corev1.PersistentVolumeClaim]{
				Indexes: kube.ClaimIndexes(), Trim: kube.TrimClaim(kit.DriverName), Packed: true,
			})
			volumes := kube.NewInformer(client, kube.InformerOptions[*corev1.PersistentVolume]{
				Indexes: kube.VolumeIndexes(), Trim: kube.TrimVolume(kit.DriverName), Packed: true,
			})
			before := heap()
			run(t, claims)
			run(t, volumes)
			await(t, "the lists", func() bool { return claims.HasSynced() && volumes.HasSynced() })
			each := (heap() - before) / n
			t.Logf("%d bytes for a claim and its volume", each)
			if each > row.most {
				t.Errorf("%d bytes for a claim and its volume, more than %d", each, row.most)
			}
			if found := volumes.ByIndex(kube.ByHandle, kube.HandleKey(row.driver, "00000007-0001-0000-0000-handle-of-a-volume")); len(found) != 1 || found[0].Spec.ClaimRef.Name != "data-database-7" {
				t.Errorf("found %v", found)
			}
		})
	}
}

// PP-3: what is packed comes out as it was put in, and is found where it belongs after each change. Catches an
// index that keeps what an object was filed under before.
func TestPackedObjects(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.Claim("data", kit.FromSnapshot("s")), kit.Claim("other", kit.FromSnapshot("s"), kit.BoundTo("pv-1")))
	packed := kube.NewInformer(h.API, kube.InformerOptions[*corev1.PersistentVolumeClaim]{Indexes: kube.ClaimIndexes(), Packed: true})
	events := listen(packed)
	run(t, packed)
	await(t, "the first list", packed.HasSynced)
	key := kube.KeyOf(kit.Claim("data"))
	same := func() {
		t.Helper()
		want, _ := kit.Read[*corev1.PersistentVolumeClaim](h.API, key)
		got, ok := packed.Lookup(key)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Error(diff)
		}
	}
	same()
	kit.Edit(h.API, key, func(c *corev1.PersistentVolumeClaim) {
		label(c)
		c.Spec.VolumeName, c.Spec.StorageClassName = "pv-2", kit.Ptr("")
	})
	await(t, "a change", func() bool { return events.has("changed data b") })
	same()
	for value, want := range map[string]int{"pv-1": 1, "pv-2": 1, "": 0} {
		if got := packed.ByIndex(kube.ByVolume, value); len(got) != want {
			t.Errorf("%d objects under %q, want %d", len(got), value, want)
		}
	}
	if got := packed.ByIndex(kube.ByStorageClass, "fast"); len(got) != 1 || got[0].Name != "other" {
		t.Errorf("of the class: %v", got)
	}
	kit.Remove[*corev1.PersistentVolumeClaim](h.API, key)
	await(t, "the end", func() bool { return events.has("gone data") })
	if got := packed.ByIndex(kube.BySnapshotSource, "default/s"); len(got) != 1 || len(packed.All()) != 1 {
		t.Errorf("still there: %v", got)
	}
}
