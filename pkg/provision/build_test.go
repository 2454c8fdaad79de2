// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

var update = flag.Bool("update", false, "write the golden files anew")

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

var gone = &metav1.Time{Time: now.Add(-time.Minute)}

const uid = "a1b2c3d4-0000-1111-2222-333344445555"

// plain is the default setting of the acceptance cases: driver d, an Immediate class sc with policy
// Delete, a claim of 1Gi ReadWriteOnce.
func plain(edits ...func(*ClaimInput)) ClaimInput {
	in := ClaimInput{
		Config:   config(),
		Topology: topology.NewIndex(),
		Now:      now,
		Claim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns1", Name: "data", UID: uid, ResourceVersion: "7",
				Annotations: map[string]string{wellknown.AnnStorageProvisioner: "d"},
			},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				StorageClassName: of("sc"),
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				},
			},
		},
		Class: &storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: "sc", UID: "sc-uid"},
			Provisioner: "d", Parameters: map[string]string{},
			ReclaimPolicy: of(corev1.PersistentVolumeReclaimDelete), VolumeBindingMode: of(storagev1.VolumeBindingImmediate),
		},
	}
	for _, edit := range edits {
		edit(&in)
	}
	return in
}

func config(more ...capability.Controller) Config {
	plugins := []capability.Plugin{csi.PluginCapability_Service_CONTROLLER_SERVICE}
	return Config{
		Driver: "d", Identity: "id-1",
		Capabilities: capability.Of(plugins, append(more, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME)...),
		Options:      Options{NamePrefix: "pvc", NameLength: wellknown.FullUID, PreventModeConversion: true, AttributesClass: true, Topology: true, Places: topology.Options{Immediate: true}},
	}
}

func of[T any](value T) *T { return &value }

func can(more ...capability.Controller) func(*ClaimInput) {
	return func(in *ClaimInput) { in.Capabilities = config(more...).Capabilities }
}

// withTopology makes the driver topology-aware, with nodes n1 in zone a and n2 in zone b.
func withTopology(in *ClaimInput) {
	in.Capabilities = capability.Of([]capability.Plugin{
		csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	}, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME)
	for node, zone := range map[string]string{"n1": "a", "n2": "b"} {
		in.Topology.SetNode(node, map[string]string{"zone": zone})
		in.Topology.SetDriverKeys(node, []string{"zone"})
	}
}

func annotate(key, value string) func(*ClaimInput) {
	return func(in *ClaimInput) { in.Claim.Annotations[key] = value }
}

func node(name string) func(*ClaimInput) { return annotate(wellknown.AnnSelectedNode, name) }

func parameters(pairs ...string) func(*ClaimInput) {
	return func(in *ClaimInput) {
		for i := 0; i < len(pairs); i += 2 {
			in.Class.Parameters[pairs[i]] = pairs[i+1]
		}
	}
}

func block(in *ClaimInput) { in.Claim.Spec.VolumeMode = of(corev1.PersistentVolumeBlock) }

// show is a step in one line: what kind it is, and the part of it that was decided.
func show(step any) string {
	text := fmt.Sprintf("%T", step)[len("provision."):]
	detail := ""
	switch s := step.(type) {
	case Ignore:
		detail = s.Why
	case Wait:
		detail = s.After.String()
	case ReadSource:
		detail = fmt.Sprint(s.Source)
	case ProtectSource:
		detail = fmt.Sprint(s.Source)
	case ReadAttributes:
		detail = s.Name
	case ReadNamespace:
		detail = s.Name
	case Create:
		detail = s.Attempt.Name()
	case Resume:
		detail = s.Attempt.Name()
	case Save:
		detail = s.Attempt.Name()
	case FinishUndo:
		detail = s.Attempt.Name()
	case Reject:
		detail = s.Err.Error()
		if s.Silent {
			text = "silent " + text
		}
		if s.Waiting {
			text = "waiting " + text
		}
	default:
		detail = showOutcome(step)
	}
	if detail == "" {
		return text
	}
	return text + ": " + detail
}

func showOutcome(step any) string {
	switch s := step.(type) {
	case Reschedule:
		return s.Err.Error()
	case Provisioned:
		return s.Attempt.Made.GetVolumeId()
	case Undo:
		return s.Handle + ": " + s.Err.Error()
	case KeepTrying:
		return fmt.Sprintf("%v: %v", s.After, s.Err)
	case LetGo:
		return s.Name + ": " + s.Err.Error()
	case TryLater:
		return s.Err.Error()
	case Infeasible:
		return s.Err.Error()
	case WaitDetached:
		return s.Node
	case Delete:
		secret := "no secret"
		if s.Secret != nil {
			secret = s.Secret.Namespace + "/" + s.Secret.Name
		}
		if s.MayLackSecret {
			secret += " or none"
		}
		return s.Handle + " with " + secret
	}
	return ""
}

// created runs the machine up to its attempt.
func created(t *testing.T, in ClaimInput) *Attempt {
	t.Helper()
	step := NextClaimStep(in)
	create, ok := step.(Create)
	if !ok {
		t.Fatalf("got %s, want Create", show(step))
	}
	return create.Attempt
}

// built is the PersistentVolume of an attempt.
func built(t *testing.T, attempt *Attempt, made *csi.Volume) *corev1.PersistentVolume {
	t.Helper()
	volume, err := BuildVolume(attempt, made)
	if err != nil {
		t.Fatal(err)
	}
	return volume
}

// golden compares an object with the file of its name, whole.
func golden(t *testing.T, name string, object any) {
	t.Helper()
	plain, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.JSONToYAML(plain)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Error(d)
	}
}

func everyCapability() capability.Set {
	plugins := []capability.Plugin{csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS}
	return capability.Of(plugins, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT)
}
