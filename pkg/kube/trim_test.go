// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// rich is the metadata that all objects of this test have.
const rich = `
  creationTimestamp: "2026-01-01T00:00:00Z"
  generateName: gen-
  selfLink: /self
  labels: {team: blue}
  ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u}]
  finalizers: [a/b, c/d]
  resourceVersion: "7"
  uid: u-1
`

// owners are of use where a snapshot may be a member of a group.
const owners = "  ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u}]\n"

// kept is what stays of it.
const kept = `
  creationTimestamp: "2026-01-01T00:00:00Z"
  finalizers: [a/b, c/d]
  resourceVersion: "7"
  uid: u-1
`

const claimSpec = `
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 5Gi}, limits: {storage: 9Gi}}
  selector: {matchLabels: {a: b}}
  storageClassName: fast
  volumeMode: Block
  dataSource: {kind: PersistentVolumeClaim, name: src}
  dataSourceRef: {kind: PersistentVolumeClaim, name: src}
`

const shortSpec = `
  resources: {requests: {storage: 5Gi}}
  storageClassName: fast
  volumeMode: Block
  dataSource: {kind: PersistentVolumeClaim, name: src}
  dataSourceRef: {kind: PersistentVolumeClaim, name: src}
`

const claimStatus = `
status: {phase: Pending, accessModes: [ReadWriteOnce], capacity: {storage: 5Gi}, conditions: [{type: Resizing, status: "True"}]}
`

// What the caches keep of each kind. Each row would catch one that keeps objects whole, as the older sidecars
// do, and one that drops what a room reads; that the rooms get along with it show their own tests, whose
// caches are trimmed the same way.
func TestTrim(t *testing.T) {
	const driver = kit.DriverName
	claim, volume := kube.TrimClaim(driver), kube.TrimVolume(driver)
	for name, row := range map[string]struct {
		trim     func(any)
		obj      any
		from, to string
	}{
		"PP-3 a claim that waits for the driver keeps what templates may ask for": {
			as(claim), &corev1.PersistentVolumeClaim{},
			`metadata:` + rich + `  annotations: {volume.kubernetes.io/storage-provisioner: ` + driver + `, mine: "1", ` + applied + `: big}` + "\nspec:" + claimSpec + claimStatus,
			`metadata:` + kept + owners + `  labels: {team: blue}` + "\n" + `  annotations: {volume.kubernetes.io/storage-provisioner: ` + driver + `, mine: "1"}` + "\nspec:" + claimSpec + claimStatus,
		},
		"PP-3 a bound claim": {
			as(claim), &corev1.PersistentVolumeClaim{},
			`metadata:` + rich + `  annotations: {volume.kubernetes.io/storage-provisioner: ` + driver + `, mine: "1", ` + applied + `: big}` + "\nspec:" + claimSpec + "  volumeName: pv\n" + claimStatus,
			`metadata:` + kept + `  annotations: {volume.kubernetes.io/storage-provisioner: ` + driver + `}` + "\nspec:" + shortSpec + "  volumeName: pv\nstatus: {phase: Pending}",
		},
		"PP-3 a waiting claim of another driver": {
			as(claim), &corev1.PersistentVolumeClaim{},
			`metadata:` + rich + `  annotations: {volume.kubernetes.io/storage-provisioner: other, mine: "1", volume.beta.kubernetes.io/storage-class: old}` + "\nspec:" + claimSpec + claimStatus,
			`metadata:` + kept + `  annotations: {volume.kubernetes.io/storage-provisioner: other, volume.beta.kubernetes.io/storage-class: old}` + "\nspec:" + shortSpec + "status: {phase: Pending}",
		},
		"PP-3 a volume of the driver": {
			as(volume), &corev1.PersistentVolume{}, volumeOf(driver, ownVolume), `metadata:` + kept +
				`  annotations: {pv.kubernetes.io/provisioned-by: ` + driver + `, volume.kubernetes.io/provisioner-deletion-secret-name: s, volume.kubernetes.io/provisioner-deletion-secret-namespace: ns}` + `
spec:
  claimRef: {namespace: ns, name: data, uid: u-2}
  csi: {driver: ` + driver + `, volumeHandle: h}
` + affinity + `
  persistentVolumeReclaimPolicy: Delete
  storageClassName: fast
status: {phase: Bound}`,
		},
		"PP-3 a volume of another driver": {
			as(volume), &corev1.PersistentVolume{}, volumeOf("other", ownVolume), `metadata:` + kept + `  annotations: {pv.kubernetes.io/provisioned-by: other}
spec:
  claimRef: {namespace: ns, name: data, uid: u-2}
  csi: {driver: other, volumeHandle: h}
  persistentVolumeReclaimPolicy: Delete
status: {phase: Bound}`,
		},
		"PP-3 a volume that was migrated to the driver is translated whole": {
			as(volume), &corev1.PersistentVolume{},
			"metadata:" + rich + "  annotations: {pv.kubernetes.io/migrated-to: " + driver + "}\nspec: {nfs: {server: s, path: /p}, capacity: {storage: 1Gi}}",
			"metadata:" + kept + owners + "  labels: {team: blue}\n  annotations: {pv.kubernetes.io/migrated-to: " + driver + "}\nspec: {nfs: {server: s, path: /p}, capacity: {storage: 1Gi}}",
		},
		"PP-3 a node": {
			as(kube.TrimNode), &corev1.Node{}, "metadata:" + rich + "  annotations: {a: b}\nspec: {podCIDR: 10.0.0.0/8}\nstatus: {phase: Running}",
			"metadata:" + kept + "  labels: {team: blue}",
		},
		"PP-3 a CSINode": {
			as(kube.TrimCSINode(driver)), &storagev1.CSINode{},
			"metadata:" + rich + "spec: {drivers: [{name: other, nodeID: id, topologyKeys: [x]}, {name: " + driver + ", nodeID: id, topologyKeys: [zone], allocatable: {count: 3}}]}",
			"metadata:" + kept + "spec: {drivers: [{name: " + driver + ", nodeID: id, topologyKeys: [zone]}]}",
		},
		"PP-3 an attachment": {
			as(kube.TrimAttachment), &storagev1.VolumeAttachment{},
			"metadata:" + rich + "spec: {attacher: " + driver + ", nodeName: node, source: {persistentVolumeName: pv}}\nstatus: {attached: true, attachmentMetadata: {a: b}}",
			"metadata:" + kept + "spec: {nodeName: node, source: {persistentVolumeName: pv}}",
		},
		"PP-3 a snapshot's content": {
			as(kube.TrimApplied[*kube.Content]), &kube.Content{},
			"metadata:" + rich + "  annotations: {mine: x, " + applied + ": big}\nspec: {driver: d, deletionPolicy: Delete}\nstatus: {snapshotHandle: h, volumeGroupSnapshotHandle: g}",
			"metadata:" + kept + owners + "  labels: {team: blue}\n  annotations: {mine: x}\nspec: {driver: d, deletionPolicy: Delete}\nstatus: {snapshotHandle: h}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := yaml.UnmarshalStrict([]byte(row.from), row.obj); err != nil {
				t.Fatal(err)
			}
			row.trim(row.obj)
			wanted := reflect.New(reflect.TypeOf(row.obj).Elem()).Interface()
			if err := yaml.UnmarshalStrict([]byte(row.to), wanted); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fields(t, wanted), fields(t, row.obj)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const (
	applied  = "kubectl.kubernetes.io/last-applied-configuration"
	affinity = "  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]}}"
	// ownVolume has the name of the driver twice.
	ownVolume = `  annotations: {pv.kubernetes.io/provisioned-by: DRIVER, mine: "1", volume.kubernetes.io/provisioner-deletion-secret-name: s, volume.kubernetes.io/provisioner-deletion-secret-namespace: ns}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 5Gi}
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: ns, name: data, uid: u-2, resourceVersion: "9"}
  csi: {driver: DRIVER, volumeHandle: h, fsType: ext4, volumeAttributes: {a: b}, nodeStageSecretRef: {name: s, namespace: ns}}
` + affinity + `
  mountOptions: [ro]
  persistentVolumeReclaimPolicy: Delete
  storageClassName: fast
  volumeMode: Filesystem
status: {phase: Bound, message: m}`
)

func volumeOf(driver, text string) string {
	return "metadata:" + rich + strings.ReplaceAll(text, "DRIVER", driver)
}

func as[T any](trim func(T)) func(any) { return func(obj any) { trim(obj.(T)) } }

// fields is an object as it is written.
func fields(t *testing.T, obj any) map[string]any {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// PP-3: a patch that was made from a trimmed object changes what was edited, and nothing that was trimmed.
// Catches trimming of finalizers, which a merge patch replaces whole, and patches that send all they know.
func TestPatchOfATrimmedObject(t *testing.T) {
	h := kit.New(t)
	full := kit.With(kit.Volume("pv", kit.ClaimedBy(kit.Claim("data"))), kit.Labels(map[string]string{"team": "blue"}), kit.Annotation("mine", "1"),
		func(o metav1.Object) { o.SetFinalizers([]string{"a/b", "c/d"}) })
	full.Spec.CSI.VolumeAttributes = map[string]string{"a": "b"}
	before := stored(t, h, full)
	short := before.DeepCopy()
	kube.TrimVolume(kit.DriverName)(short)
	if short.Labels != nil || short.Spec.Capacity != nil {
		t.Fatalf("not trimmed: %v", short)
	}
	after, err := kube.Patch(t.Context(), h.API, short, func(v *corev1.PersistentVolume) { kube.AddFinalizer(v, "e/f") })
	if err != nil {
		t.Fatal(err)
	}
	want := before.DeepCopy()
	want.Finalizers, want.ResourceVersion = []string{"a/b", "c/d", "e/f"}, after.ResourceVersion
	if diff := cmp.Diff(want, after); diff != "" {
		t.Error(diff)
	}
}
